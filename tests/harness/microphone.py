"""A caller's microphone: spoken utterances by flite on a fixed timeline, as one wav."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from tests.harness.sound import RATE, Sound, Span, read_wav, resample, trim, write_wav

CALLER_VOICES = ("slt", "awb", "kal16")
"""flite voices callers speak with; rms is left out because agents may speak with it."""


@lru_cache(maxsize=256)
def speak(text: str, voice: str = "slt") -> Sound:
    """Say ``text`` with a flite voice: 48 kHz, trimmed to where it is heard, peak 0.5. Do not write to it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, str(path)], check=True, capture_output=True)
        sound, rate = read_wav(path)
    sound = trim(resample(sound, rate, RATE), RATE)
    sound = (sound * (0.5 / float(np.max(np.abs(sound))))).astype(np.float32)
    sound.flags.writeable = False
    return sound


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something the caller says, and which samples of the microphone's timeline are its sound."""

    text: str
    span: Span
    sound: Sound


class Microphone:
    """What a caller's microphone hears, built from left to right; positions are samples at 48 kHz."""

    def __init__(self, voice: str = "slt") -> None:
        self.voice = voice
        self.utterances: list[Utterance] = []
        self._pieces: list[Sound] = []
        self._length = 0

    @property
    def length(self) -> int:
        """Samples so far."""
        return self._length

    def pause(self, seconds: float) -> Microphone:
        """Say nothing for so long."""
        self._add(np.zeros(round(seconds * RATE), np.float32))
        return self

    def say(self, text: str, voice: str | None = None) -> Microphone:
        """Speak ``text``."""
        return self.play(speak(text, voice or self.voice), text)

    def play(self, sound: Sound, label: str) -> Microphone:
        """Let the microphone hear any sound at 48 kHz, remembered as an utterance under ``label``."""
        self.utterances.append(Utterance(label, Span(self._length, self._length + sound.size), sound))
        self._add(sound)
        return self

    def sound(self, tail_s: float = 0.0) -> Sound:
        """The whole timeline, and ``tail_s`` of silence after it."""
        return np.concatenate([*self._pieces, np.zeros(round(tail_s * RATE), np.float32)])

    def write(self, path: Path, tail_s: float = 120.0) -> Path:
        """Write the timeline as a 16-bit wav followed by silence, so that it outlasts the call."""
        write_wav(path, self.sound(tail_s))
        return path

    def _add(self, sound: Sound) -> None:
        self._pieces.append(sound)
        self._length += sound.size
