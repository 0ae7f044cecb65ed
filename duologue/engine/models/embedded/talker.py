"""The embedded talker: a reply's text, as it appears, to codec frames, by flite's acoustic model.

It says a phrase as soon as one can be said (see ``phrasing``), so sound begins while the text still grows.
One ``step`` is one phrase of one session.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Fence,
    Hold,
    Interrupt,
    Open,
    ReplyText,
    StageInput,
    StageOutput,
    TextSpan,
)
from duologue.engine.models.embedded.delivery import Delivery, deliver
from duologue.engine.models.embedded.flite import FliteError, FliteVoice, rms_voice
from duologue.engine.models.embedded.phrasing import Phrase, Phraser
from duologue.engine.models.embedded.speakable import Scanner, Word
from duologue.engine.models.embedded.voice_format import (
    FRAME_VECTORS,
    FRAME_WIDTH,
    SAMPLE_RATE,
    VECTOR_SAMPLES,
    VECTOR_WIDTH,
)
from duologue.metrics import DROPS

_log = logging.getLogger(__name__)

MAX_REPLY_CHARS = 20_000
"""Characters of one reply (some twenty minutes of speech); what comes after them is not said."""
_SLOWEST, _FASTEST = 0.5, 2.0


class _Reply:
    """One reply on its way from text to frames."""

    def __init__(self, fence: Fence, start: int) -> None:
        self.fence = fence
        self.rate = 1.0
        self._scanner = Scanner(start)
        self._phraser = Phraser()
        self._next_char = start
        self._room = MAX_REPLY_CHARS
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
        """Take a delta; text that was there already is passed over, and text beyond the limit is dropped."""
        fresh = delta.text[max(self._next_char - delta.start, 0):]
        text = fresh[:self._room]
        if len(text) < len(fresh):
            DROPS.labels(what="reply_text", reason="too_long").inc()
        self._next_char += len(text)
        self._room -= len(text)
        self.rate = min(max(delta.rate, _SLOWEST), _FASTEST)
        self._phraser.push(self._scanner.push(text))
        if delta.last:
            self._phraser.push(self._scanner.finish())
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
            speech = voice.speak([token for word in words for token in word.tokens], self.rate)
        except FliteError as error:
            _log.warning("%d words of turn %d are left out: %s", len(phrase.words), self.fence.turn, error)
            DROPS.labels(what="words", reason="unspeakable").inc(len(phrase.words))
            return None
        return deliver(speech, phrase, not self._begun, self.rate, len(self._pending))


def _span(before: int, word: Word, first: int, end: int) -> TextSpan:
    """``before`` vectors of the reply come before the phrase that ``first`` and ``end`` count from."""
    return TextSpan(word.start, word.end, (before + first) * VECTOR_SAMPLES, (before + end) * VECTOR_SAMPLES)


class _Session:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.held = False
        self.replies: dict[int, _Reply] = {}
        self.spoken = -1
        """The last turn that has been said to its end."""

    @property
    def ready(self) -> bool:
        """Replies are said one after the other."""
        return not self.held and bool(self.replies) and next(iter(self.replies.values())).ready


class Talker:
    """The stage; flite has one voice and no state of a session, so sessions only take turns."""

    def __init__(self, voice: FliteVoice) -> None:
        self._voice = voice
        self._sessions: dict[str, _Session] = {}

    def receive(self, message: StageInput) -> None:
        """File a message; text of an older epoch, or of a reply already said, is dropped."""
        if isinstance(message, Open):
            self._sessions[message.session] = _Session(message.epoch)
        elif isinstance(message, Close):
            self._sessions.pop(message.session, None)
        elif isinstance(message, Interrupt):
            if session := self._sessions.get(message.session):
                session.epoch = message.epoch
                session.replies.clear()
        elif isinstance(message, Hold):
            if session := self._sessions.get(message.session):
                session.held = message.held
        elif isinstance(message, ReplyText):
            self._add(message)

    def _add(self, delta: ReplyText) -> None:
        fence = delta.fence
        session = self._sessions.get(fence.session)
        if session is None:
            return
        if fence.epoch != session.epoch or fence.turn <= session.spoken:
            DROPS.labels(what="reply_text", reason="stale").inc()
            return
        if fence.turn not in session.replies:
            session.replies[fence.turn] = _Reply(fence, delta.start)
        session.replies[fence.turn].add(delta)

    @property
    def ready(self) -> bool:
        """Whether any session has a phrase to say or a reply to end."""
        return any(session.ready for session in self._sessions.values())

    def step(self) -> Sequence[StageOutput]:
        """Say the next phrase of the session that has waited longest: 5 ms of work a second of speech."""
        name = next((name for name, session in self._sessions.items() if session.ready), None)
        if name is None:
            return ()
        session = self._sessions.pop(name)
        self._sessions[name] = session  # to the end of the row
        turn, reply = next(iter(session.replies.items()))
        frames = reply.speak(self._voice)
        if frames.last:
            del session.replies[turn]
            session.spoken = turn
        return (frames,)


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker:
    """The talker of the embedded pipeline; it has no options. Needs the system package libflite1."""
    if options:
        raise ConfigError(f"the embedded talker has no options; remove {', '.join(sorted(options))}")
    if pipeline.output_rate != SAMPLE_RATE:
        raise ConfigError(f"the embedded voice speaks at {SAMPLE_RATE} Hz: set output_rate to {SAMPLE_RATE}")
    return Talker(rms_voice())
