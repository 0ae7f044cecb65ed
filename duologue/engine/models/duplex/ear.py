"""The duplex thinker's ear: the caller's audio to rows of the thinker's embedding space.

Log-mel spectrum (80 channels, windows of 25 ms each 10 ms, the mel scale and filters of Whisper, arXiv 2212.04356),
the mean over a row's windows, one linear layer. Causal: a window ends where its 10 ms end, so that a row is known as
soon as its samples are; and what Whisper takes from a whole recording (its loudest moment) is left out.

Each row is computed by itself, so its bits do not depend on how the stream was cut, nor on other sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import INPUT_RATE, Pcm
from duologue.engine.models.duplex.layout import MEL_BINS
from duologue.engine.models.mel import filters
from duologue.engine.runners.base import Embeddings

WINDOW = INPUT_RATE * 25 // 1000
HOP = INPUT_RATE * 10 // 1000
_FLOOR = 1e-10
"""Least power a channel has (Whisper's)."""


class Ear:
    """The weights: ``weight`` float32 (hidden_size, 80), ``bias`` float32 (hidden_size,)."""

    def __init__(self, weight: NDArray[np.float32], bias: NDArray[np.float32], row_ms: int) -> None:
        self._weight = np.ascontiguousarray(weight.T, np.float32)
        self._bias = np.asarray(bias, np.float32)
        self.hidden_size = len(bias)
        self.row_samples = INPUT_RATE * row_ms // 1000
        if self.row_samples % HOP:
            raise ValueError(f"row_ms is {row_ms}, but a row is whole windows of 10 ms")

    def row(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The row of ``row_samples`` samples (-1..1) that follow ``WINDOW - HOP`` earlier ones, (hidden_size,)."""
        spectrum = log_mel(samples).mean(axis=0, dtype=np.float32)
        row: NDArray[np.float32] = spectrum @ self._weight + self._bias
        return row

    def hear(self, streams: Sequence[Hearing], units: Sequence[Pcm]) -> list[Embeddings]:
        """Hear the next samples of each stream."""
        return [stream.hear(pcm) for stream, pcm in zip(streams, units, strict=True)]

    def stream(self) -> Hearing:
        """Begin a session's stream."""
        return Hearing(self)


class Hearing:
    """One session's stream; what came before it was silence."""

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._samples = np.zeros(WINDOW - HOP, np.float32)
        """What the next row needs of the past, and what has come of the row itself."""

    def hear(self, pcm: Pcm) -> Embeddings:
        """Take samples; returns the rows that are whole with them."""
        step, behind = self._ear.row_samples, WINDOW - HOP
        self._samples = np.concatenate([self._samples, pcm.astype(np.float32) / 32768])
        rows = []
        while len(self._samples) >= behind + step:
            rows.append(self._ear.row(self._samples[:behind + step]))
            self._samples = self._samples[step:]
        content = np.array(rows, np.float32).reshape(len(rows), self._ear.hidden_size)
        return Embeddings(content, hashlib.blake2b(content.tobytes(), digest_size=16).digest())


def log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-mel spectrum (windows, 80) of ``samples``, one window each 10 ms that has its 25 ms; about -1.5 to 2."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP] * _HANN
    power = np.abs(np.fft.rfft(windows, axis=1)) ** 2
    mel = np.log10(np.maximum(power.astype(np.float32) @ _FILTERS, _FLOOR))
    scaled: NDArray[np.float32] = (mel + 4) / 4
    return scaled


def _hann() -> NDArray[np.float32]:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW), np.float32)


_HANN = _hann()
_FILTERS = filters(INPUT_RATE, WINDOW, MEL_BINS, INPUT_RATE / 2)
