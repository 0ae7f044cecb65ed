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
        self.length = 0
        """Samples so far; after them it is quiet."""

    def pause(self, seconds: float) -> Microphone:
        """Say nothing for so long."""
        return self.pause_until(self.length + round(seconds * RATE))

    def pause_until(self, sample: int) -> Microphone:
        """Say nothing before ``sample``."""
        self.length = max(self.length, sample)
        return self

    def say(self, text: str, voice: str | None = None) -> Microphone:
        """Speak ``text``."""
        return self.play(speak(text, voice or self.voice), text)

    def play(self, sound: Sound, label: str) -> Microphone:
        """Let the microphone hear any sound at 48 kHz, remembered as an utterance under ``label``."""
        self.utterances.append(Utterance(label, Span(self.length, self.length + sound.size), sound))
        self.length += sound.size
        return self

    def read(self, start: int, end: int) -> Sound:
        """Samples [start, end) of the timeline, which never ends."""
        out = np.zeros(end - start, np.float32)
        for utterance in self.utterances:
            first, last = max(utterance.span.start, start), min(utterance.span.end, end)
            if first < last:
                own = utterance.span.start
                out[first - start : last - start] = utterance.sound[first - own : last - own]
        return out

    def write(self, path: Path, tail_s: float = 120.0) -> Path:
        """Write the timeline as a 16-bit wav followed by silence, so that it outlasts the call."""
        write_wav(path, self.read(0, self.length + round(tail_s * RATE)))
        return path
