"""The figures of the duplex talker's speech, and how its codes are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from duologue.engine.models.duplex import codec_layout, talker_layout
from duologue.engine.models.duplex.config import DuplexConfig
from duologue.engine.runners.base import Sampling
from duologue.engine.runners.window import WindowConfig
from duologue.strict import Strict


class Voice(Strict):
    """How codes are chosen."""

    temperature: float = Field(default=0.8, ge=0)
    top_k: int = Field(default=25, ge=0)
    top_p: float = Field(default=0.85, gt=0, le=1)
    repetition_penalty: float = Field(default=1.05, gt=0)
    repetition_window: int = Field(default=16, ge=0)
    """Codes back, before the unit, that the penalty covers."""
    last_units: int = Field(default=4, gt=0)
    """Units' codes that the last unit of a reply may take: what bounds a talker that does not find its end."""


class DuplexSpeech:
    """A ``speech.Speech``."""

    def __init__(self, config: DuplexConfig, voice: Voice) -> None:
        self._voice = voice
        self.frame_samples = codec_layout.frame_samples(config.codec)
        self.unit_codes = config.codes_per_unit
        self.last_codes = voice.last_units * config.codes_per_unit
        self.unit_tokens = self.resent_tokens = config.max_unit_tokens
        self.eos = talker_layout.eos(config.codec)
        self.recent_codes = voice.repetition_window
        self._audio_bos = talker_layout.audio_bos(config.codec)

    @property
    def window(self) -> WindowConfig:
        """The oldest units go, condition and codes."""
        return WindowConfig()

    @property
    def window_room(self) -> int:
        """With ``audio_bos`` behind each condition."""
        return 2 * (self.unit_tokens + 1) + self.unit_codes + self.last_codes

    def sampling(self, *, first: bool, last: bool, codes: int, recent: Sequence[int], of_unit: int,
                 seed: int) -> Sampling:
        """Only in the last unit may the codes end before."""
        voice = self._voice
        return Sampling(
            max_tokens=codes, stop=frozenset({self.eos}) if last else frozenset(), temperature=voice.temperature,
            top_k=voice.top_k, top_p=voice.top_p, repetition_penalty=voice.repetition_penalty, recent=tuple(recent),
            forbidden=(self._audio_bos,) if last else (self.eos, self._audio_bos), seed=seed)

    def guard(self) -> None:
        """Nothing watches: what it says is noise."""
        return
