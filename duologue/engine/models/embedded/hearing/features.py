"""Log-mel spectra of 16 kHz PCM, stacked to frames of 40 ms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import INPUT_RATE, Pcm

Floats = NDArray[np.float32]

HOP = INPUT_RATE // 100
"""Samples from one spectrum to the next."""
WINDOW = 2 * HOP + HOP // 2
"""Samples of a spectrum: 25 ms."""
OVERLAP = WINDOW - HOP
"""Samples before the first new one that its first spectrum needs."""
BANDS = 40
STACK = 4
"""Spectra of a frame."""
FRAME = STACK * HOP
"""Samples of a frame."""
FRAME_WIDTH = STACK * BANDS
_FFT = 512
_LOWEST_HZ, _HIGHEST_HZ = 60.0, 7600.0
_FLOOR = 1e-5
"""Power of a band about where flite's silence with a little noise is: what is below it says nothing."""
_CENTRE, _SPREAD = -5.0, 3.5
"""About the mean and the deviation of the logarithms."""
_HANN = np.hanning(WINDOW).astype(np.float32)


def filters(warp: float = 1.0) -> Floats:
    """Triangles in mel (HTK's), float32 (bins, BANDS); ``warp`` moves the frequencies as another throat would."""
    edges = _hertz(np.linspace(_mel(_LOWEST_HZ), _mel(_HIGHEST_HZ), BANDS + 2)) * warp
    bins = np.fft.rfftfreq(_FFT, 1 / INPUT_RATE)[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    shape = np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle))
    return shape.clip(0).astype(np.float32)


def frames(sound: NDArray[np.float32], bank: Floats) -> Floats:
    """Frames, float32 (n, FRAME_WIDTH), of OVERLAP samples before them and n * FRAME samples in -1..1."""
    windows = np.lib.stride_tricks.sliding_window_view(sound, WINDOW)[::HOP] * _HANN
    spectra = np.fft.rfft(windows, _FFT)
    power = (spectra.real**2 + spectra.imag**2).astype(np.float32)
    logarithms: Floats = (np.log(power @ bank + np.float32(_FLOOR)) - np.float32(_CENTRE)) / np.float32(_SPREAD)
    return logarithms.reshape(-1, FRAME_WIDTH)


def scaled(pcm: Pcm) -> Floats:
    """Samples in -1..1."""
    return pcm.astype(np.float32) / np.float32(32768)


def _mel(hertz: float) -> float:
    return float(2595 * np.log10(1 + hertz / 700))


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    hertz: NDArray[np.float64] = 700 * (10 ** (mel / 2595) - 1)
    return hertz
