"""What the released code was given, and our parts are given in the tests. It needs numpy alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SEED = 3
"""Of the tiny random checkpoint the values were made with."""

RATE = 16_000
UNITS = 40
"""Units of the session, 1 s each: the encoder's state is dropped after 30."""

SYSTEM = ("<|im_start|>system\nStreaming Omni Conversation.\n<|audio_start|>", "<|audio_end|><|im_end|>")
"""The system text before and behind the reference clip."""

FORCED = 3
"""Units at the start of the session in which the model may only listen."""

INTERRUPTED = (6, 17)
"""Units before which the caller has interrupted: what was being spoken is dropped."""


def caller() -> npt.NDArray[np.int16]:
    """The caller's audio, ``UNITS`` seconds at 16 kHz: tones that glide and swell over noise, and two silences."""
    random = np.random.Generator(np.random.PCG64(45))
    samples = UNITS * RATE
    seconds = np.arange(samples) / RATE
    pitch = 180 + 60 * np.sin(2 * np.pi * 0.31 * seconds) + 8 * seconds
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 12))
    swell = np.clip(np.sin(2 * np.pi * 0.17 * seconds) + 0.4, 0, None)
    sound = 0.12 * swell * voice + 0.004 * random.standard_normal(samples)
    for first, behind in ((5, 7), (20, 22)):
        sound[first * RATE:behind * RATE] = 0
    return np.round(np.clip(sound, -1, 1) * 32767).astype(np.int16)


def reference() -> npt.NDArray[np.int16]:
    """A reference clip of 3.27 s at 16 kHz: its mel frames do not fill the last pooled row."""
    random = np.random.Generator(np.random.PCG64(46))
    samples = 52_320
    seconds = np.arange(samples) / RATE
    phase = 2 * np.pi * np.cumsum(120 + 25 * np.sin(2 * np.pi * 1.3 * seconds)) / RATE
    sound = 0.1 * sum(np.sin(k * phase) / k for k in range(1, 16)) + 0.003 * random.standard_normal(samples)
    return np.round(np.clip(sound, -1, 1) * 32767).astype(np.int16)


def samples(pcm: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
    """The same as floats, full scale 1."""
    return pcm.astype(np.float32) / np.float32(32768)
