"""The upper half of a telephone's band, made up: G.711 ends at 4 kHz, and models for 16 kHz never heard it empty.

Noise from 4 to 8 kHz: faint all the time, and louder where the voice is a hiss, for of "s" and "f" the telephone leaves
only the foot. The figures were chosen by what the embedded ear understands: of 126 sentences 84 with the band empty,
97 to 104 with it filled (by the noise that happens to be in it), 122 when nothing was cut off.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from duologue.agent.media.resample import Resampler
from duologue.engine import Pcm

_FLOOR = 120.0
"""Level of the noise at rest: 49 dB below full scale."""

_HISS = 1.5
"""Level of the noise against that of the voice above 2.8 kHz, where the voice has nothing below."""

_RATE = 8000
_FROM_HZ = 2800
_HALF = 32
_BLOCK = 40  # 5 ms at 8 kHz
_RAMP = (np.arange(1, 2 * _BLOCK + 1) / (2 * _BLOCK)).astype(np.float32)


@lru_cache(maxsize=1)
def _noise() -> NDArray[np.float32]:
    """A second of noise of level 1 between 4 and 8 kHz: low noise with its spectrum mirrored."""
    low = np.random.default_rng(1).normal(0, 2000, _RATE).astype(np.int16)
    noise = Resampler(_RATE, 2 * _RATE).process(low).astype(np.float32)
    noise[1::2] *= -1
    return noise / np.float32(noise.std())


@lru_cache(maxsize=1)
def _high_pass() -> NDArray[np.float32]:
    place = np.arange(-_HALF, _HALF + 1)
    taps = -np.sinc(place * 2 * _FROM_HZ / _RATE) * 2 * _FROM_HZ / _RATE * np.hamming(2 * _HALF + 1)
    taps[_HALF] += 1
    return taps.astype(np.float32)


class UpperBand:
    """Makes up what belongs above a stream at 8 kHz."""

    def __init__(self) -> None:
        self._before = np.zeros(2 * _HALF, np.float32)
        self._level = _FLOOR
        self._place = 0

    def above(self, pcm: Pcm) -> NDArray[np.float32]:
        """Return two samples at 16 kHz, to be added, for each of the next at 8 kHz: 1 to 4000 of them."""
        line = np.concatenate((self._before, pcm.astype(np.float32)))
        self._before = line[pcm.size:]
        high, whole = np.convolve(line, _high_pass(), "valid"), line[_HALF:_HALF + pcm.size]
        hiss, total = _levels(high), _levels(whole)
        levels = np.maximum(_HISS * hiss * np.minimum(hiss / total, 1), _FLOOR)
        before = np.concatenate(([self._level], levels[:-1]))
        envelope = before[:, None] + (levels - before)[:, None] * _RAMP
        self._level = float(levels[-1])
        noise = _noise()[self._place:self._place + 2 * pcm.size]
        self._place = (self._place + 2 * pcm.size) % (_noise().size // 2)
        above: NDArray[np.float32] = noise * envelope.reshape(-1)[:2 * pcm.size]
        return above


def _levels(piece: NDArray[np.float32]) -> NDArray[np.float32]:
    """Level of every 5 ms, the last perhaps shorter; never 0."""
    if spare := -piece.size % _BLOCK:
        piece = np.concatenate((piece, np.zeros(spare, np.float32)))
    blocks = piece.reshape(-1, _BLOCK)
    levels: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", blocks, blocks) / np.float32(_BLOCK) + np.float32(1))
    return levels
