"""What the encoder is given: log-mel spectra of a stream, unit by unit, and of whole clips.

As released (``StreamingMelProcessorExact`` and ``MiniCPMAAudioProcessor`` of ``processing_minicpmo.py``): a stream is
analysed in a window of its past, and each unit's frames are those of the whole window at that moment. So is their
floor, 80 dB below the loudest of the window; in a window shorter than 5 s it is the spectrum's own. Here only the new
frames are computed, and of the older ones the peaks are kept: the numbers are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import INPUT_RATE, Pcm
from duologue.engine.models.duplex.ear import HOP, WINDOW, log_mel

Frames = NDArray[np.float32]
"""Log-mel frames, one each 10 ms: (frames, 80)."""

UNIT_SAMPLES = INPUT_RATE
"""A unit is 1 s."""
UNIT_FRAMES = UNIT_SAMPLES // HOP
OVERLAP = 2
"""Frames of 10 ms that are given again before a unit's own, and in advance behind them (``CNN_REDUNDANCY_MS``)."""
CLIP_SAMPLES = 30 * INPUT_RATE
"""Longest clip that is analysed, and encoded, in one piece."""

_FIRST = 1035 * INPUT_RATE // 1000
"""Samples the first unit is filled up to, with silence before it (``FIRST_CHUNK_MS``)."""
_LEAD = _FIRST // HOP * HOP - UNIT_SAMPLES
"""Samples by which the window's end is ahead of the unit's last own frame: whole frames of the first unit's silence."""
_REACH = WINDOW // 2
"""Samples a frame reaches to either side of its middle; its middle is where its 10 ms begin."""
_BEHIND = OVERLAP * HOP + _REACH
"""Samples before a unit that its first frame reaches back to."""

_FLOOR_FROM = -(-(5 * INPUT_RATE - _LEAD) // UNIT_SAMPLES)
"""Units with which the window is 5 s long."""
_SLIDE_AT = -(-(30 * INPUT_RATE - _LEAD) // UNIT_SAMPLES)
"""Units with which the window is 30 s long, and loses its first."""
_SLIDE_BY = 10
_RANGE = 8.0 / 4
"""80 dB (8 decades) as ``log_mel`` scales it."""


@dataclass(frozen=True, slots=True)
class _Peak:
    """The largest value in a unit's own frames."""

    within: float
    """With the unit before it."""
    opening: float
    """As the first unit of a window."""


@dataclass(frozen=True, slots=True)
class Spectrum:
    """A stream as far as it has come. It never changes: ``after`` gives the next."""

    _tail: NDArray[np.float32] = field(default_factory=lambda: np.zeros(_BEHIND + _FIRST - UNIT_SAMPLES, np.float32))
    """The last samples, from the first that the next unit's frames reach back to; before a stream it is silent."""
    _peaks: tuple[_Peak, ...] = ()
    """Of the units in the window, at most 29."""

    def after(self, pcm: Pcm) -> tuple[Frames, Spectrum]:
        """Take a unit, int16 (16000,); returns its frames (104, 80), two of them before and two behind its own.

        In a stream's first unit the two before stand for nothing and are to be left out.
        """
        samples = np.concatenate([self._tail, _scaled(pcm)])
        start, end = _BEHIND, _BEHIND + UNIT_SAMPLES + _LEAD
        frames = log_mel(samples[:UNIT_SAMPLES + 2 * _BEHIND - HOP])
        own, ahead = frames[OVERLAP:-OVERLAP], frames[-OVERLAP:]
        first = log_mel(_mirrored(samples[start:start + HOP + _REACH], before=_REACH))
        last = log_mel(_mirrored(samples[end - HOP - _REACH:end], behind=_REACH - HOP))
        peaks = (*self._peaks, _Peak(float(own.max()), float(max(first.max(), own[len(first):].max()))))
        if len(peaks) == _SLIDE_AT:
            peaks = peaks[_SLIDE_BY:]
        if len(peaks) >= _FLOOR_FROM:
            loudest = max(peaks[0].opening, *(peak.within for peak in peaks[1:]), ahead.max(), last.max())
            frames = np.maximum(frames, np.float32(loudest - _RANGE))
        return frames, Spectrum(samples[UNIT_SAMPLES:], peaks)


def clip_frames(pcm: Pcm) -> Frames:
    """Give the frames of a clip of at most 30 s, one for each 10 ms begun; behind it is silence, up to 30 s."""
    silence = min(2 * WINDOW, CLIP_SAMPLES - len(pcm))
    frames = log_mel(_mirrored(np.pad(_scaled(pcm), (0, silence)), before=_REACH, behind=_REACH))
    if silence + len(pcm) == CLIP_SAMPLES:
        frames = frames[:-1]
    floored: Frames = np.maximum(frames, frames.max() - np.float32(_RANGE))
    return floored[:-(-len(pcm) // HOP)]


def _scaled(pcm: Pcm) -> NDArray[np.float32]:
    return pcm.astype(np.float32) / np.float32(32768)


def _mirrored(samples: NDArray[np.float32], before: int = 0, behind: int = 0) -> NDArray[np.float32]:
    """Continue ``samples`` beyond their ends as in a mirror that stands on the last one."""
    return np.pad(samples, (before, behind), mode="reflect")
