"""The encoder where a recogniser could be: leased for an utterance, read by its own reader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.agreement import NOTHING, Understanding
from duologue.engine.models.embedded.dialogue.policy import Sentence
from duologue.engine.models.embedded.hearing.encoder import STEP, Encoder, Stream
from duologue.engine.models.embedded.hearing.features import FRAME
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.shape import DELAY
from duologue.engine.models.embedded.hearing.transcript import Spoken, Transcript
from duologue.engine.models.embedded.recogniser import Hypothesis
from duologue.engine.runners.base import Rows

_REST = np.zeros(FRAME * (DELAY + STEP), np.int16)
"""Silence after which nothing more is to come."""


class Listener:
    """``table`` is the thinker's embeddings of ``pieces``, float32 (pieces, hidden_size)."""

    channel = ""
    """It was trained on voices near and far, and adapts to none."""

    def __init__(self, encoder: Encoder, pieces: Pieces, table: Rows) -> None:
        self._encoder = encoder
        self._pieces = pieces
        self._table = table
        self.start("")

    def start(self, channel: str) -> None:
        """Begin an utterance."""
        self._stream = Stream(self._encoder)
        self._transcript = Transcript(self._pieces, self._table)

    def feed(self, pcm: Pcm) -> None:
        """Hear the next samples (16 kHz)."""
        self._transcript.read(self._stream.push(pcm))

    def partial(self) -> Hypothesis:
        """The words so far; each comes 160 to 280 ms after its end."""
        return Hypothesis(self._transcript.words, frames=self._transcript.frames)

    def finish(self) -> Hypothesis:
        """End the utterance: its words."""
        self.feed(_REST)
        return self.partial()


class Unmeasured:
    """The meter of voices that need not be measured."""

    def measure(self, pcm: Pcm) -> str:
        """The channel of all voices."""
        return Listener.channel


class Sounding:
    """Reads a listener: its words as they are, with their sounds. See ``Reader``."""

    def partial(self, recogniser: Listener) -> Sequence[Hypothesis]:
        """See ``Reader``."""
        return (recogniser.partial(),)

    def finish(self, recogniser: Listener) -> Sequence[Hypothesis]:
        """See ``Reader``."""
        return (recogniser.finish(),)

    def understand(self, heard: Sequence[Hypothesis], speech_end: int) -> Understanding:
        """See ``Reader``."""
        words = [word for word in heard[0].words if word.middle <= speech_end]
        if not words:
            return NOTHING
        sounds = tuple(word.sound if isinstance(word, Spoken) else None for word in words)
        return Understanding(Sentence(" ".join(word.word for word in words), sounds=sounds), NOTHING.reading)
