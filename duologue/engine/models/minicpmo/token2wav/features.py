"""What the networks that hear a reference recording are given: three kinds of spectra."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.mel import filters

Samples = NDArray[np.float32]
"""Mono samples, of which 1 is full scale."""
Frames = NDArray[np.float32]
"""(frames, bands)."""

HEARING_RATE = 16_000
"""Sample rate of what the code and speaker networks hear, in Hz."""

_CODE_WINDOW, _CODE_HOP, _CODE_BANDS = 400, 160, 128
_RANGE = 8.0
"""Decades between the loudest and the quietest value told apart (Whisper, arXiv 2212.04356)."""

_SPEAKER_WINDOW, _SPEAKER_HOP, _SPEAKER_FFT, _SPEAKER_BANDS = 400, 160, 512, 80
_SPEAKER_LOWEST_HZ = 20.0
_EMPHASIS = 0.97
_POVEY = 0.85
"""Kaldi's window is a Hann window to this power (feature-window.cc)."""

_PROMPT_WINDOW, _PROMPT_HIGHEST_HZ = 1920, 8000.0
_PROMPT_FLOOR = 1e-5


def code_frames(samples: Samples) -> Frames:
    """Log-mel frames of 10 ms, 128 bands, about -1 to 1, of samples at 16 kHz, as Whisper has them."""
    padded = np.pad(samples, _CODE_WINDOW // 2, mode="reflect")
    power = _power(_windows(padded, _CODE_WINDOW, _CODE_HOP)[:-1] * _hann(_CODE_WINDOW))
    log = np.log10(np.maximum(power @ filters(HEARING_RATE, _CODE_WINDOW, _CODE_BANDS, HEARING_RATE / 2), 1e-10))
    frames: Frames = ((np.maximum(log, log.max() - _RANGE) + 4) / 4).astype(np.float32)
    return frames


def speaker_frames(samples: Samples) -> Frames:
    """Log-mel frames of 10 ms, 80 bands, of samples at 16 kHz, as Kaldi has them, less their mean."""
    windows = _windows(samples, _SPEAKER_WINDOW, _SPEAKER_HOP).astype(np.float64)
    windows = windows - windows.mean(1, keepdims=True)
    windows = windows - _EMPHASIS * np.concatenate([windows[:, :1], windows[:, :-1]], 1)
    n = np.arange(_SPEAKER_WINDOW)
    windows *= (0.5 - 0.5 * np.cos(2 * np.pi * n / (_SPEAKER_WINDOW - 1))) ** _POVEY
    power = _power(windows, _SPEAKER_FFT)
    log = np.log(np.maximum(power @ _kaldi_filters(), np.finfo(np.float32).eps))
    frames: Frames = (log - log.mean(0)).astype(np.float32)
    return frames


def prompt_frames(samples: Samples, rate: int, hop: int, bands: int) -> Frames:
    """Log-mel frames of ``hop`` samples as the flow makes them, of samples at ``rate`` Hz."""
    padded = np.pad(samples, (_PROMPT_WINDOW - hop) // 2, mode="reflect")
    magnitude = np.sqrt(_power(_windows(padded, _PROMPT_WINDOW, hop) * _hann(_PROMPT_WINDOW)) + 1e-9)
    mel = magnitude @ filters(rate, _PROMPT_WINDOW, bands, _PROMPT_HIGHEST_HZ)
    frames: Frames = np.log(np.maximum(mel, _PROMPT_FLOOR)).astype(np.float32)
    return frames


def _windows(samples: Samples, length: int, hop: int) -> NDArray[np.float32]:
    return np.lib.stride_tricks.sliding_window_view(samples, length)[::hop]


def _power(windows: NDArray[np.floating], transform: int | None = None) -> NDArray[np.float64]:
    spectra = np.fft.rfft(windows, transform, axis=1)
    power: NDArray[np.float64] = (np.abs(spectra) ** 2).astype(np.float64)
    return power


def _hann(length: int) -> NDArray[np.float32]:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length), np.float32)


def _kaldi_filters() -> NDArray[np.float64]:
    """Triangles on Kaldi's mel scale (mel-computations.cc), (frequencies, bands); the highest frequency has none."""
    frequencies = 1127 * np.log1p(np.fft.rfftfreq(_SPEAKER_FFT, 1 / HEARING_RATE) / 700)
    edges = np.linspace(1127 * np.log1p(_SPEAKER_LOWEST_HZ / 700), frequencies[-1], _SPEAKER_BANDS + 2)
    rise = (frequencies[:, None] - edges[None, :-2]) / np.diff(edges)[None, :-1]
    fall = (edges[None, 2:] - frequencies[:, None]) / np.diff(edges)[None, 1:]
    triangles: NDArray[np.float64] = np.maximum(0, np.minimum(rise, fall))
    triangles[-1] = 0
    return triangles
