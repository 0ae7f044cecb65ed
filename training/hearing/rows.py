"""Rows of speech to train on: sentences as microphones bring them, and what is wanted of each frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import INPUT_RATE
from duologue.engine.models.embedded.hearing import features
from duologue.engine.models.embedded.hearing.features import FRAME, OVERLAP, Floats
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.shape import BLANK, DELAY
from training.hearing.corpus import Sentence

LENGTH = 200
"""Frames of a row."""
PHONES = ("pau", "aa", "ae", "ah", "ao", "aw", "ax", "ay", "b", "ch", "d", "dh", "eh", "er", "ey", "f", "g", "hh", "ih",
          "iy", "jh", "k", "l", "m", "n", "ng", "ow", "oy", "p", "r", "s", "sh", "t", "th", "uh", "uw", "v", "w", "y",
          "z", "zh")
"""As flite names them."""
_PHONE_DELAY = 1
_LEAD_S, _GAP_S = (0.08, 0.4), (0.2, 1.2)
_GAIN_DB = (-10.0, 5.0)
_NOISE = (2.0, 60.0)
"""Root mean square of white noise, of 32768."""
_HUM = 0.3
"""Share of rows whose noise is low, as of traffic and machines."""
_TELEPHONE = 0.08
"""Share of rows with a telephone's band."""
_BAND_HZ = (300.0, 3400.0)
_TILT = 0.25
"""Most by which the lowest bands are raised above the highest ones, or the other way round, in deviations."""
_MASKS, _MASK_BANDS, _MASK_FRAMES = 1, 5, 2
_WARPS = tuple(features.filters(float(warp)) for warp in np.linspace(0.9, 1.12, 8))


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """Frames, float32 (LENGTH, FRAME_WIDTH); of each the wanted class and the phone, int64 (LENGTH,)."""

    frames: Floats
    classes: NDArray[np.int64]
    phones: NDArray[np.int64]


def row(drawn: Sequence[Sentence], pieces: Pieces, random: np.random.Generator) -> Row:
    """As many of ``drawn`` as a row takes, the last one cut."""
    samples = LENGTH * FRAME
    sound = np.zeros(OVERLAP + samples, np.float32)
    classes, phones = np.full(LENGTH, BLANK, np.int64), np.zeros(LENGTH, np.int64)
    at = _samples(_LEAD_S, random)
    for sentence in drawn:
        if at >= samples:
            break
        pcm = sentence.speech.pcm[:samples - at]
        loud = 10 ** (random.uniform(*_GAIN_DB) / 20)
        sound[OVERLAP + at:OVERLAP + at + len(pcm)] = features.scaled(pcm) * np.float32(loud)
        mark(classes, phones, sentence, at, pieces)
        at += len(sentence.speech.pcm) + _samples(_GAP_S, random)
    bank = _WARPS[random.integers(len(_WARPS))]
    return Row(_masked(features.frames(_heard(sound, random), bank), random), classes, phones)


def mark(classes: NDArray[np.int64], phones: NDArray[np.int64], sentence: Sentence, at: int, pieces: Pieces) -> None:
    """Note a sentence that begins with sample ``at``: each word's pieces up to DELAY behind its end."""
    free = 0
    for word, end in zip(sentence.words, sentence.speech.words, strict=True):
        wanted = pieces.classes(word)
        first = max(free, (at + end) // FRAME + DELAY + 1 - len(wanted))
        for place, piece in enumerate(wanted, first):
            if place < len(classes):
                classes[place] = piece
        free = first + len(wanted)
    ends = np.array([end for _, end in sentence.speech.phones])
    middles = (np.arange(len(phones)) - _PHONE_DELAY) * FRAME + FRAME // 2 - at
    inside = (middles >= 0) & (middles < ends[-1])
    names = np.array([PHONES.index(name) for name, _ in sentence.speech.phones])
    phones[inside] = names[np.searchsorted(ends, middles[inside], side="right")]


def _samples(seconds: tuple[float, float], random: np.random.Generator) -> int:
    return int(random.uniform(*seconds) * INPUT_RATE)


def _heard(sound: Floats, random: np.random.Generator) -> Floats:
    low, high = _NOISE
    noise = random.standard_normal(len(sound), np.float32)
    if random.random() < _HUM:
        # A running mean of 16 samples: little above 1 kHz is left.
        sums = np.cumsum(noise)
        noise[16:] = (sums[16:] - sums[:-16]) / 4
    sound = sound + noise * np.float32(low * (high / low) ** random.random() / 32768)
    if random.random() < _TELEPHONE:
        spectrum = np.fft.rfft(sound)
        hertz = np.fft.rfftfreq(len(sound), 1 / INPUT_RATE)
        spectrum[(hertz < _BAND_HZ[0]) | (hertz > _BAND_HZ[1])] = 0
        sound = np.fft.irfft(spectrum, len(sound)).astype(np.float32)
    return sound.clip(-1, 1)


def _masked(frames: Floats, random: np.random.Generator) -> Floats:
    """Tilt the spectra, and hide some bands and some moments (SpecAugment, arXiv 1904.08779)."""
    bands = frames.reshape(-1, features.BANDS) + np.linspace(1, -1, features.BANDS, dtype=np.float32) * np.float32(
        random.uniform(-_TILT, _TILT))
    for _ in range(_MASKS):
        first, count = random.integers(features.BANDS), random.integers(_MASK_BANDS + 1)
        bands[:, first:first + count] = 0
        first, count = random.integers(len(bands)), random.integers(_MASK_FRAMES * features.STACK + 1)
        bands[first:first + count] = 0
    return bands.reshape(frames.shape)
