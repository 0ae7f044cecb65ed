"""Hears one session: cuts its units into utterances and has them recognised while they are spoken.

Nothing is decoded while nobody speaks. Where all recognisers are leased an utterance waits with its audio, and
catches up a few units at a time. So does a caller's first one, until there is enough speech to measure what the
caller's voice and microphone sound like.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from duologue.engine.messages import INPUT_RATE, Pcm, Unit
from duologue.engine.models.embedded.readers import Reader
from duologue.engine.models.embedded.recogniser import FRAMES_PER_SECOND, Hypothesis, Pool
from duologue.engine.models.embedded.turns import TurnTaking
from duologue.engine.models.embedded.utterance import Utterance
from duologue.metrics import DROPS

ONSET = 0.5
"""Speech probability that begins an utterance (silero's own threshold)."""
RELEASE = 0.35
"""Speech probability below which the caller is silent (silero's threshold less 0.15)."""
PRE_ROLL_MS = 240
"""Audio before the first speech that is decoded with it: a soft first sound comes before the onset."""
LONGEST_MS = 18_000
"""Length at which an utterance is ended whatever is said."""
MEASURE_MS = 480
"""Speech from which a caller's channel is measured; less if the caller falls silent before."""
_UNITS_AT_ONCE = 4
"""Units decoded in one go: those before the onset and its own, or some of what had to wait."""
_SAMPLES_PER_FRAME = INPUT_RATE // FRAMES_PER_SECOND


class Ear:
    """One session's hearing."""

    def __init__(self, pool: Pool, reader: Reader, turns: TurnTaking, unit_ms: int) -> None:
        self._pool = pool
        self._reader = reader
        self._turns = turns
        self._unit_ms = unit_ms
        self._before: deque[Pcm] = deque(maxlen=PRE_ROLL_MS // unit_ms)
        self._channel: str | None = None
        self._count = 0
        self.utterance: Utterance | None = None

    def hear(self, unit: Unit, *, over_reply: bool) -> Utterance | None:
        """Take the next unit; returns the utterance it is a part of, ``ended`` when this was its last."""
        current = self.utterance
        if current is None:
            if unit.speech < ONSET:
                self._before.append(unit.pcm)
                return None
            current = Utterance(self._count, unit.index, over_reply, unit.index, self._unit_ms)
            self._count += 1
            self.utterance = current
            for pcm in self._before:
                self._add(current, pcm)
            self._before.clear()
        self._add(current, unit.pcm)
        if unit.speech >= RELEASE:
            current.spoken_units += 1
            current.silent_units = 0
            current.last_speech = unit.index
            current.speech_end = current.samples
        else:
            current.silent_units += 1
            self._before.append(unit.pcm)
        self._decode(current)
        self._end_if_over(current)
        if current.ended:
            self.utterance = None
        return current

    def close(self) -> None:
        """Give the recogniser back."""
        if self.utterance is not None:
            self._release(self.utterance)
            self.utterance = None

    def fail(self) -> None:
        """Forget a recogniser that cannot be trusted any more."""
        if self.utterance is not None and self.utterance.recogniser is not None:
            self._pool.discard()
        self.utterance = None

    def _add(self, current: Utterance, pcm: Pcm) -> None:
        current.waiting.append(pcm)
        current.samples += len(pcm)

    def _decode(self, current: Utterance) -> None:
        if self._channel is None:
            if not current.silent_units and current.spoken_ms < MEASURE_MS:
                return
            self._channel = self._pool.meter.measure(np.concatenate(current.waiting))
        if current.recogniser is None:
            current.recogniser = self._pool.lease()
            if current.recogniser is None:
                return
            current.recogniser.start(self._channel)
        budget = _UNITS_AT_ONCE
        while current.waiting and budget:
            current.recogniser.feed(current.waiting.popleft())
            budget -= 1
        self._understand(current, self._reader.partial(current.recogniser))

    def _understand(self, current: Utterance, heard: Sequence[Hypothesis]) -> None:
        seen = tuple(hypothesis.texts for hypothesis in heard)
        current.settled = seen == current.seen
        if not current.settled or current.silent_units == 1:
            current.seen = seen
            current.understanding = self._reader.understand(heard, self._speech_frames(current))

    def _speech_frames(self, current: Utterance) -> int:
        # While the caller speaks, the newest words are as good as the older ones.
        samples = current.speech_end if current.silent_units else current.samples
        return samples // _SAMPLES_PER_FRAME

    def _end_if_over(self, current: Utterance) -> None:
        too_long = current.samples * 1000 >= LONGEST_MS * INPUT_RATE
        if current.recogniser is None:
            if too_long:
                DROPS.labels(what="utterance", reason="no_recogniser").inc()
                current.ended = True
            return
        if current.waiting and not too_long:
            return
        if too_long or self._turns.finished(current):
            self._finish(current)

    def _finish(self, current: Utterance) -> None:
        recogniser = current.recogniser
        assert recogniser is not None
        if current.waiting:
            DROPS.labels(what="unit", reason="utterance_too_long").inc(len(current.waiting))
            current.waiting.clear()
        heard = self._reader.finish(recogniser)
        current.recogniser = None
        current.understanding = self._reader.understand(heard, self._speech_frames(current))
        if current.understanding.trusted or current.spoken_ms >= 800:
            self._channel = recogniser.channel
        self._pool.give_back(recogniser)
        current.ended = True

    def _release(self, current: Utterance) -> None:
        if current.recogniser is not None:
            current.recogniser.finish()
            self._pool.give_back(current.recogniser)
            current.recogniser = None
