"""Slaney's mel scale and its filters (Auditory Toolbox, TR 1998-010), as Whisper and librosa have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LINEAR_MEL = 15.0
"""The scale is linear below 1 kHz, where it has 15 mels."""
_LOG_STEP = np.log(6.4) / 27


def filters(rate: int, window: int, bands: int, highest: float) -> NDArray[np.float32]:
    """Triangles, each of area 1, from 0 to ``highest`` Hz: (window // 2 + 1 frequencies, bands).

    ``rate`` is in Hz; ``window`` is the samples of the transform whose frequencies are weighed.
    """
    frequencies = np.fft.rfftfreq(window, 1 / rate)
    edges = _hertz(np.linspace(0.0, _mel(highest), bands + 2))
    rise = (frequencies[:, None] - edges[None, :-2]) / np.diff(edges)[None, :-1]
    fall = (edges[None, 2:] - frequencies[:, None]) / np.diff(edges)[None, 1:]
    triangles = np.maximum(0, np.minimum(rise, fall))
    return np.asarray(triangles * (2 / (edges[2:] - edges[:-2])), np.float32)


def _mel(hertz: float) -> float:
    return float(hertz * 3 / 200 if hertz < 1000 else _LINEAR_MEL + np.log(hertz / 1000) / _LOG_STEP)


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < _LINEAR_MEL, mel * 200 / 3, 1000 * np.exp(_LOG_STEP * (mel - _LINEAR_MEL)))
