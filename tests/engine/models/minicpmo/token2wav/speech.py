"""Recordings that are shaped like speech, and files of them."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def like_speech(rate: int, seconds: float = 1.3) -> NDArray[np.float32]:
    """A gliding buzz in bursts, and a little noise: float32 at ``rate`` Hz."""
    t = np.arange(round(rate * seconds)) / rate
    buzz = np.sum([np.sin(2 * np.pi * k * (140 + 20 * t) * t) / k for k in range(1, 20)], axis=0)
    hiss = np.random.default_rng(0).standard_normal(len(t))
    sound: NDArray[np.float32] = (0.2 * buzz * (0.6 + 0.4 * np.sin(9 * t)) + 0.003 * hiss).astype(np.float32)
    return sound


def write_wav(file: Path, samples: NDArray[np.float32], rate: int, channels: int = 1) -> Path:
    """Write ``samples``, each to all channels, as 16 bits."""
    pcm = np.repeat((np.clip(samples, -1, 1) * 32767).astype("<i2"), channels)
    with wave.open(str(file), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(pcm.tobytes())
    return file
