"""The embedded talker: a reply's text, as it appears, to codec frames, by flite's acoustic model.

It says a phrase as soon as one can be said (see ``phrasing``), so sound begins while the text still grows.
One ``step`` is one phrase of one session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import CodecFrames, Fence, ReplyText, StageInput, StageOutput, TextSpan
from duologue.engine.models.embedded.delivery import Delivery, deliver
from duologue.engine.models.embedded.flite import FliteError, FliteVoice, rms_voice
from duologue.engine.models.embedded.phrasing import Phrase, Phraser
from duologue.engine.models.embedded.reading import Reading
from duologue.engine.models.embedded.speakable import Word
from duologue.engine.models.embedded.voice.talker import TrainedTalker
from duologue.engine.models.embedded.voice_format import (
    FRAME_VECTORS,
    FRAME_WIDTH,
    SAMPLE_RATE,
    VECTOR_SAMPLES,
    VECTOR_WIDTH,
)
from duologue.engine.models.filing import Filing
from duologue.engine.models.options import read_options
from duologue.metrics import DROPS
from duologue.strict import Strict

_log = logging.getLogger(__name__)


class _Reply:
    """One reply on its way from text to frames."""

    def __init__(self, fence: Fence, start: int) -> None:
        self.fence = fence
        self._reading = Reading(start)
        self._phraser = Phraser()
        self._begun = False
        self._seq = 0
        self._vectors = 0
        self._pending = np.empty((0, VECTOR_WIDTH), np.float32)

    @property
    def ready(self) -> bool:
        return self._phraser.ready or self._phraser.done

    @property
    def finished(self) -> bool:
        return self._phraser.done

    def add(self, delta: ReplyText) -> None:
        """Take a delta."""
        self._phraser.push(self._reading.read(delta))
        if delta.last:
            self._phraser.finish()

    def speak(self, voice: FliteVoice) -> CodecFrames:
        """The frames of the next phrase; the last ones, maybe none, once the text is finished."""
        phrase = self._phraser.next()
        delivery = self._deliver(voice, phrase) if phrase else None
        before = self._vectors + len(self._pending)
        if delivery:
            self._pending = np.concatenate([self._pending, delivery.vectors])
            self._begun = self._begun or bool(delivery.words)
        if self.finished:
            missing = -len(self._pending) % FRAME_VECTORS
            self._pending = np.concatenate([self._pending, np.repeat(self._pending[-1:], missing, axis=0)])
        whole = len(self._pending) // FRAME_VECTORS * FRAME_VECTORS
        frames = self._pending[:whole].reshape(-1, FRAME_WIDTH)
        self._pending = self._pending[whole:]
        self._vectors += whole
        fence = Fence(self.fence.session, self.fence.epoch, self.fence.turn, self._seq)
        self._seq += 1
        words = delivery.words if delivery else ()
        return CodecFrames(fence, frames, tuple(_span(before, *word) for word in words), self.finished)

    def _deliver(self, voice: FliteVoice, phrase: Phrase) -> Delivery | None:
        words = (*phrase.before, *phrase.words, *phrase.after)
        try:
            speech = voice.speak([token for word in words for token in word.tokens], self._reading.rate)
        except FliteError as error:
            _log.warning("%d words of turn %d are left out: %s", len(phrase.words), self.fence.turn, error)
            DROPS.labels(what="words", reason="unspeakable").inc(len(phrase.words))
            return None
        return deliver(speech, phrase, not self._begun, self._reading.rate, len(self._pending))


def _span(before: int, word: Word, first: int, end: int) -> TextSpan:
    """``before`` vectors of the reply come before the phrase that ``first`` and ``end`` count from."""
    return TextSpan(word.start, word.end, (before + first) * VECTOR_SAMPLES, (before + end) * VECTOR_SAMPLES)


class Talker:
    """The stage; flite has one voice and no state of a session, so sessions only take turns."""

    def __init__(self, voice: FliteVoice) -> None:
        self._voice = voice
        self._replies: Filing[ReplyText, _Reply] = Filing(
            ReplyText, lambda delta: _Reply(delta.fence, delta.start))

    def receive(self, message: StageInput) -> None:
        """File a message; text of an older epoch, or of a reply already said, is dropped."""
        self._replies.receive(message)

    @property
    def ready(self) -> bool:
        """Whether any session has a phrase to say or a reply to end."""
        return self._replies.ready

    def step(self) -> Sequence[StageOutput]:
        """Say the next phrase of the session that has waited longest: 5 ms of work a second of speech."""
        spoken = [reply.speak(self._voice) for reply in self._replies.take(1)]
        for frames in spoken:
            if frames.last:
                self._replies.end(frames.fence)
        return spoken


class TalkerOptions(Strict):
    """Options of the embedded talker."""

    voice: Literal["rms", "trained"] = "trained"
    """flite's, which needs the system package libflite1, or our own; the codec's must be the same."""


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker | TrainedTalker:
    """The talker of the embedded pipeline; its options are :class:`TalkerOptions`."""
    wanted = read_options(TalkerOptions, options, "embedded talker")
    if pipeline.output_rate != SAMPLE_RATE:
        raise ConfigError(f"the embedded voice speaks at {SAMPLE_RATE} Hz: set output_rate to {SAMPLE_RATE}")
    return TrainedTalker.load() if wanted.voice == "trained" else Talker(rms_voice())
