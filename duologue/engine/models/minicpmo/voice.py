"""The figures of the talker's speech, and how its codes are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from duologue.engine.models.minicpmo.guard import CodeGuard, GuardOptions
from duologue.engine.runners.base import Sampling
from duologue.engine.runners.window import WindowConfig
from duologue.strict import Strict

UNIT_TOKENS = 20
"""Tokens of one unit's answer at most (``max_new_speak_tokens_per_chunk`` of the release); not all are text."""

_RESENT_TOKENS = 4
"""Tokens of text in a unit where the thinker's own parting is lost: what a person says in a second."""


class VoiceOptions(Strict):
    """How codes are chosen; the defaults are what the released duplex code applies (``MiniCPMTTS.generate_chunk``).

    ``tts_config`` has ``top_p`` and ``top_k`` too, but the release only makes warpers of them and passes none on: a
    code is drawn from all of them.
    """

    temperature: float = Field(default=0.8, ge=0)
    repetition_penalty: float = Field(default=1.05, gt=0)
    """Its power is how often a code occurs among the last ``repetition_window`` of the unit."""
    repetition_window: int = Field(default=16, gt=0)
    last_units: int = Field(default=4, gt=0)
    """Units' codes that the last unit of a reply may take until its end comes; the release cuts it after one, and with
    it the last word."""
    short_first_unit: bool = False
    """Whether the first unit of a reply may end before its 25 codes, as it may in the release."""
    guard: GuardOptions | None = GuardOptions()
    """When a talker counts as lost; null for never."""


class TtsSpeech:
    """A ``speech.Speech``."""

    def __init__(self, options: VoiceOptions, *, eos: int, unit_codes: int, frame_samples: int,
                 silence_code: int) -> None:
        self._options = options
        self._silence_code = silence_code
        self.frame_samples = frame_samples
        self.unit_codes = unit_codes
        self.last_codes = options.last_units * unit_codes
        self.unit_tokens = UNIT_TOKENS
        self.resent_tokens = _RESENT_TOKENS
        self.eos = eos
        self.recent_codes = options.repetition_window

    @property
    def window(self) -> WindowConfig:
        """A reply that outgrows the talker goes on from the unit before (``sliding_recompute`` of the release)."""
        return WindowConfig(low=self.window_room)

    @property
    def window_room(self) -> int:
        """With the row of ``audio_bos`` behind each condition."""
        return 2 * (self.unit_tokens + 1) + self.unit_codes + self.last_codes

    def sampling(self, *, first: bool, last: bool, codes: int, recent: Sequence[int], of_unit: int,
                 seed: int) -> Sampling:
        """Only in the last unit may the codes end before, and in the first where that is asked for."""
        options = self._options
        may_end = last or (first and options.short_first_unit)
        own = tuple(recent[len(recent) - min(of_unit, len(recent)):])
        return Sampling(
            max_tokens=codes, stop=frozenset({self.eos}) if may_end else frozenset(),
            temperature=options.temperature, repetition_penalty=options.repetition_penalty, repetition="often",
            repetition_window=options.repetition_window, recent=own, forbidden=() if may_end else (self.eos,),
            seed=seed)

    def guard(self) -> CodeGuard | None:
        """One that counts from here."""
        return None if self._options.guard is None else CodeGuard(self._options.guard, self._silence_code)
