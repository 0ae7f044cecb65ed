"""One reply in the duplex talker: units of speech in, one segment of its runner each, codes out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pydantic import Field

from duologue.engine.messages import CodecFrames, Fence, ReplyText, TextSpan
from duologue.engine.models.duplex import codec_layout, talker_layout
from duologue.engine.models.duplex.conditioning import Conditioner
from duologue.engine.models.duplex.config import DuplexConfig
from duologue.engine.models.duplex.speech_units import SpeechUnit, UnitSpans, speech_units
from duologue.engine.runners.base import Finish, Piece, Sampling, Tokens
from duologue.engine.runners.sessions import Output, Sessions
from duologue.metrics import DROPS
from duologue.strict import Strict

MAX_WAITING_UNITS = 1024
"""Units of one reply that may wait to be said (17 minutes of 1 s units)."""


class Voice(Strict):
    """How codes are chosen; the defaults are MiniCPM-o 4.5's."""

    temperature: float = Field(default=0.8, ge=0)
    top_k: int = Field(default=25, ge=0)
    top_p: float = Field(default=0.85, gt=0, le=1)
    repetition_penalty: float = Field(default=1.05, gt=0)
    repetition_window: int = Field(default=16, ge=0)
    """Codes back that the penalty covers."""
    last_units: int = Field(default=4, gt=0)
    """Units' codes that the last unit of a reply may take: what bounds a talker that does not find its end."""


class Speech:
    """What all replies share: the checkpoint's figures and the voice."""

    def __init__(self, config: DuplexConfig, voice: Voice) -> None:
        self.voice = voice
        self.frame_samples = codec_layout.frame_samples(config.codec)
        self.unit_codes = config.codes_per_unit
        self.last_codes = voice.last_units * config.codes_per_unit
        self.unit_tokens = config.max_unit_tokens
        self.eos = talker_layout.eos(config.codec)
        self.audio_bos = talker_layout.audio_bos(config.codec)

    @property
    def window_room(self) -> int:
        """Positions that one unit, and the last one of a reply after it, take at most."""
        return 2 * (self.unit_tokens + 1) + self.unit_codes + self.last_codes

    def sampling(self, *, last: bool, codes: int, recent: Sequence[int], seed: int) -> Sampling:
        """How ``codes`` codes at most are chosen; only in the last unit may they end before."""
        voice = self.voice
        return Sampling(
            max_tokens=codes, stop=frozenset({self.eos}) if last else frozenset(), temperature=voice.temperature,
            top_k=voice.top_k, top_p=voice.top_p, repetition_penalty=voice.repetition_penalty, recent=tuple(recent),
            forbidden=(self.audio_bos,) if last else (self.eos, self.audio_bos), seed=seed)


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
        self._left = 0
        """Codes it may still take."""
        self._codes = 0
        """Codes of the reply so far."""
        self._recent: deque[int] = deque(maxlen=speech.voice.repetition_window)
        self._segments = 0
        self._seq = 0

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
        if message.conditioning is not None:
            self._conditioner.check(message.conditioning)
        elif message.text:
            message = replace(message, conditioning=self._conditioner.by_words(message.text, message.start))
        units = list(speech_units(message, self._speech.unit_tokens))
        if len(self._waiting) + len(units) > MAX_WAITING_UNITS:
            raise ValueError(f"more than {MAX_WAITING_UNITS} units of one reply wait to be said")
        self._next_char, self._whole = message.start + len(message.text), message.last
        self._waiting += units

    def begin(self) -> CodecFrames | None:
        """Begin the next unit, or go on with one that was paused; returns the end of a reply that says nothing."""
        session, pieces = self._fence.session, list[Piece]()
        if self._unit is None:
            self._unit = unit = self._waiting.popleft()
            if unit.conditioning is None and not self._codes:
                return self._frames([], (), last=True)
            self._spans = UnitSpans(unit, self._codes * self._speech.frame_samples,
                                    self._speech.unit_codes * self._speech.frame_samples)
            self._left = self._speech.last_codes if unit.last else self._speech.unit_codes
            if unit.conditioning is not None:
                pieces = [self._conditioner.condition(unit.conditioning), Tokens((self._speech.audio_bos,))]
        if not self._segments:
            self._sessions.open(session, ())
        self._sessions.append(session, pieces)
        self._sessions.generate(session, self._speech.sampling(
            last=self._unit.last, codes=self._left, recent=self._recent,
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
        end = self._codes * self._speech.frame_samples
        if output.finish not in (Finish.STOP, Finish.LENGTH):
            told = spans.spoken(end)
            return self._frames(codes, told, last=False) if codes or told else None
        self._unit = None
        return self._frames(codes, (*spans.spoken(end), *spans.rest(end)), last=unit.last)

    def _frames(self, codes: Sequence[int], spans: tuple[TextSpan, ...], *, last: bool) -> CodecFrames:
        fence = Fence(self._fence.session, self._fence.epoch, self._fence.turn, self._seq)
        self._seq += 1
        return CodecFrames(fence, np.array(codes, np.int32).reshape(-1, 1), spans, last)
