"""Resampling of a live stream: what goes in comes out at once, to the sample, a millisecond or two behind.

A polyphase FIR filter (Crochiere and Rabiner, Multirate Digital Signal Processing, 1983, chapter 3). Libraries for
music hold samples back and give them out in bursts, up to 100 ms of them.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from duologue.engine import Pcm

_HALF_TAPS = 16
"""Samples on either side of one at the lower of the two rates: the filter is down from passing to stopping within
about an eighth of the band, and holds sound back for 2 ms at 8 kHz."""

_STOP_BETA = 7.0
"""Shape of the Kaiser window: what must not pass is 70 dB down."""

_PASS = 0.94
"""Middle of the filter's slope, as a share of the lower rate's band."""


@lru_cache(maxsize=16)
def _filter(up: int, down: int) -> NDArray[np.float32]:
    """One filter a phase, newest sample last: shape (up, taps)."""
    widest = max(up, down)
    half = _HALF_TAPS * widest
    place = np.arange(-half, half)
    taps = np.sinc(place * _PASS / widest) * _PASS * up / widest * np.kaiser(2 * half + 1, _STOP_BETA)[:-1]
    length = -(-2 * half // up)
    padded = np.zeros(length * up)
    padded[:2 * half] = taps
    phases: NDArray[np.float32] = padded.reshape(length, up).T[:, ::-1].astype(np.float32)
    phases /= phases.sum(axis=1, keepdims=True)  # no phase louder than another: constant in, constant out
    return phases


class Resampler:
    """Turns int16 mono at ``rate`` Hz into ``to`` Hz.

    After n samples went in, exactly ceil(n * to / rate) have come out.
    """

    def __init__(self, rate: int, to: int) -> None:
        shared = gcd(rate, to)
        self._up, self._down = to // shared, rate // shared
        self._phases = _filter(self._up, self._down)
        self._before = np.zeros(self._phases.shape[1] - 1, np.float32)
        self._place = 0  # of the next sample out, in samples at ``rate`` times ``up`` from the next one in

    def process(self, pcm: Pcm) -> Pcm:
        """Take the next samples, any number; returns those that are due."""
        if self._up == self._down or not pcm.size:
            return pcm
        line = np.concatenate((self._before, pcm.astype(np.float32)))
        self._before = line[pcm.size:]
        places = np.arange(self._place, pcm.size * self._up, self._down)
        self._place += places.size * self._down - pcm.size * self._up
        windows = np.lib.stride_tricks.sliding_window_view(line, self._phases.shape[1])
        out = np.einsum("ij,ij->i", windows[places // self._up], self._phases[places % self._up])
        rounded: Pcm = np.clip(np.rint(out), -32768, 32767).astype(np.int16)
        return rounded
