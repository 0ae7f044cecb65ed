"""One reply in a talker: units of speech in, one segment of its runner each, codes out.

What differs from family to family comes by two protocols: how a unit is conditioned, and the figures of its codes.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from duologue.engine.messages import CodecFrames, Conditioning, Fence, ReplyText, TextSpan
from duologue.engine.models.duplex.speech_units import SpeechUnit, UnitSpans, speech_units
from duologue.engine.runners.base import Finish, Piece, Sampling
from duologue.engine.runners.sessions import Output, Sessions
from duologue.engine.runners.window import WindowConfig
from duologue.metrics import DERAILED, DROPS

_log = logging.getLogger(__name__)

MAX_WAITING_UNITS = 1024
"""Units of one reply that may wait to be said (17 minutes of 1 s units)."""


class Conditioner(Protocol):
    """What makes the condition of a unit's codes."""

    def check(self, conditioning: Conditioning) -> None:
        """Raise ``ValueError`` for tokens or states that are not this thinker's, or not as many of each."""

    def by_words(self, text: str, start: int) -> Conditioning:
        """What ``text``, from character ``start`` of its reply on, is conditioned on when its states are lost."""

    def pieces(self, conditioning: Conditioning) -> Sequence[Piece]:
        """What stands before the unit's codes; a unit may be without a token."""


class Guard(Protocol):
    """What watches one reply's codes."""

    def watch(self, codes: Sequence[int], *, words: bool) -> str | None:
        """Take the next codes, of a unit with or without ``words``; says how the talker has lost its thread."""


class Speech(Protocol):
    """What all replies of a talker share. Codes are the runner's tokens, of ``frame_samples`` samples each."""

    frame_samples: int
    unit_codes: int
    """Codes of a unit."""
    last_codes: int
    """Codes that the last unit of a reply may take: what bounds a talker that does not find its end."""
    unit_tokens: int
    """Tokens of text that one unit is conditioned on at most."""
    resent_tokens: int
    """As many where text comes again without the thinker's parting it."""
    eos: int
    """The token that ends speech."""
    recent_codes: int
    """How many of the last codes the rules of ``sampling`` want to know."""

    @property
    def window(self) -> WindowConfig:
        """How a reply longer than the runner's sessions slides."""

    @property
    def window_room(self) -> int:
        """Positions that one unit, and the last one of a reply after it, take at most."""

    def sampling(self, *, first: bool, last: bool, codes: int, recent: Sequence[int], of_unit: int,
                 seed: int) -> Sampling:
        """How a unit's next ``codes`` codes at most are chosen.

        ``first`` and ``last`` say whether the reply begins or ends with the unit; of the ``recent`` codes the last
        ``of_unit`` are the unit's own.
        """

    def guard(self) -> Guard | None:
        """What is to watch a new reply; None when nothing is."""


class Reply:
    """One reply. At most one of its units is being said; what comes meanwhile waits."""

    def __init__(self, fence: Fence, sessions: Sessions, conditioner: Conditioner, speech: Speech) -> None:
        self._fence = fence
        self._sessions = sessions
        self._conditioner = conditioner
        self._speech = speech
        self._waiting: deque[SpeechUnit] = deque()
        self._next_char = 0
        """Where the next text begins: after a rebuild its numbers start from 0 again, its place stays."""
        self._whole = False
        """Whether the reply's last text has come."""
        self._unit: SpeechUnit | None = None
        """The unit that has been begun and not said to its end."""
        self._spans: UnitSpans | None = None
        self._begin_code = 0
        """The unit's first code, counted in the reply."""
        self._first = True
        """Whether it is the reply's first."""
        self._left = 0
        """Codes the unit may still take."""
        self._codes = 0
        """Codes of the reply so far."""
        self._recent: deque[int] = deque(maxlen=speech.recent_codes)
        self._answer: list[int] = []
        """Codes of the segment that runs."""
        self._entry = 0
        """Its entry in the session's log."""
        self._segments = 0
        self._seq = 0
        self._guard = speech.guard()
        self._lost: str | None = None
        """How the talker has lost its thread since the unit was begun."""

    @property
    def ready(self) -> bool:
        """Whether a unit can be begun, or gone on with after a pause."""
        return (self._unit is not None or bool(self._waiting)) and not self._busy

    @property
    def _busy(self) -> bool:
        return self._segments > 0 and self._sessions.busy(self._fence.session)

    def add(self, message: ReplyText) -> None:
        """Take a piece of text; one that came before is passed over. Raises ``ValueError`` for what cannot be said.

        Text that the hub sends again, after a process died, has no states of the thinker's: it is said by its words.
        """
        if message.start < self._next_char or self._whole:
            DROPS.labels(what="reply_text", reason="duplicate").inc()
            return
        most = self._speech.unit_tokens
        if message.conditioning is not None:
            self._conditioner.check(message.conditioning)
        elif message.text:
            most = self._speech.resent_tokens
            message = replace(message, conditioning=self._conditioner.by_words(message.text, message.start))
        units = list(speech_units(message, most))
        if len(self._waiting) + len(units) > MAX_WAITING_UNITS:
            raise ValueError(f"more than {MAX_WAITING_UNITS} units of one reply wait to be said")
        self._next_char, self._whole = message.start + len(message.text), message.last
        self._waiting += units

    def begin(self) -> CodecFrames | None:
        """Begin the next unit, or go on with one that was paused; returns the end of a reply that says nothing."""
        session, pieces = self._fence.session, list[Piece]()
        speech = self._speech
        if not self._segments:
            self._sessions.open(session, ())
        if self._unit is None:
            self._unit = unit = self._waiting.popleft()
            if unit.conditioning is None and not self._codes:
                return self._frames([], (), last=True)
            self._spans = UnitSpans(unit, self._codes * speech.frame_samples, speech.unit_codes * speech.frame_samples)
            self._first, self._begin_code = not self._segments, self._codes
            self._left = speech.last_codes if unit.last else speech.unit_codes
            if unit.conditioning is not None:
                pieces = list(self._conditioner.pieces(unit.conditioning))
            if self._lost is not None and pieces:
                # What it makes of its past is what it lost its thread by.
                self._sessions.forget(session, self._sessions.mark(session))
                self._lost = None
        self._entry = self._sessions.append(session, pieces)
        self._answer = []
        self._sessions.generate(session, speech.sampling(
            first=self._first, last=self._unit.last, codes=self._left, recent=tuple(self._recent),
            of_unit=self._codes - self._begin_code,
            # A reply that is said again, as a recorded one, is to sound the same.
            seed=self._fence.turn << 32 | self._segments))
        self._segments += 1
        return None

    def pause(self) -> None:
        """Make no more codes; ``begin`` goes on."""
        if self._busy:
            self._sessions.interrupt(self._fence.session)

    def take(self, output: Output) -> CodecFrames | None:
        """Take what came of the unit; returns the codes among it, if there is anything to tell."""
        unit, spans = self._unit, self._spans
        assert unit is not None
        assert spans is not None
        codes = [token for token in output.tokens if token != self._speech.eos]
        self._codes += len(codes)
        self._left -= len(codes)
        self._recent.extend(codes)
        self._answer += codes
        self._watch(codes, unit)
        end = self._codes * self._speech.frame_samples
        over = output.finish in (Finish.STOP, Finish.LENGTH) or (
            output.finish is Finish.INTERRUPTED and self._lost is not None and unit.last)
        if not over:
            told = spans.spoken(end)
            return self._frames(codes, told, last=False) if codes or told else None
        if output.finish is Finish.STOP and not unit.last:
            # The end of one unit's speech is none of the reply's.
            self._sessions.revise(self._fence.session, self._entry, self._answer)
        self._unit = None
        return self._frames(codes, (*spans.spoken(end), *spans.rest(end)), last=unit.last)

    def _watch(self, codes: Sequence[int], unit: SpeechUnit) -> None:
        """Notice a talker that has lost its thread: a last unit ends there, the next one begins without the past."""
        if self._guard is None or self._lost is not None:
            return
        self._lost = self._guard.watch(codes, words=unit.last or bool(unit.text))
        if self._lost is None:
            return
        DERAILED.labels(how=self._lost).inc()
        _log.warning("session %s, turn %d: the talker has lost its thread (%s) after %d codes",
                     self._fence.session, self._fence.turn, self._lost, self._codes)
        if unit.last:
            self.pause()

    def _frames(self, codes: Sequence[int], spans: tuple[TextSpan, ...], *, last: bool) -> CodecFrames:
        fence = Fence(self._fence.session, self._fence.epoch, self._fence.turn, self._seq)
        self._seq += 1
        return CodecFrames(fence, np.array(codes, np.int32).reshape(-1, 1), spans, last)
