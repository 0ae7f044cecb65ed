"""What replaces a lost stretch of waveform-coded speech: its last pitch period, repeated and fading.

After ITU-T G.711 Appendix I (1999), less its delay: where that waits 3.75 ms to blend into the lost stretch, this
goes on from the last sample, which a repeated period continues anyway.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from duologue.engine import Pcm

_SHORTEST_MS, _LONGEST_MS = 5, 15  # pitch between 66 and 200 Hz (Appendix I); of higher voices, several periods
_COMPARED_MS = 20
_FULL_MS, _SILENT_MS = 10, 60  # Appendix I: full for 10 ms, then a fifth less every 10 ms
_BLEND_MS = 4


class Concealer:
    """Remembers the end of a stream at ``rate`` Hz, and continues it when asked to."""

    def __init__(self, rate: int) -> None:
        self._per_ms = rate // 1000
        self._kept = (_COMPARED_MS + _LONGEST_MS) * self._per_ms
        self.reset()

    def reset(self) -> None:
        """Forget the stream."""
        self._history: NDArray[np.float32] = np.zeros(self._kept, np.float32)
        self._period: NDArray[np.float32] | None = None
        self._made = 0

    def heard(self, pcm: Pcm) -> Pcm:
        """Take what was really received; returns it, blended in where it follows something made up."""
        if not pcm.size:
            return pcm
        if self._period is not None:
            blend = min(_BLEND_MS * self._per_ms, pcm.size)
            share = np.arange(1, blend + 1, dtype=np.float32) / blend
            pcm = pcm.copy()
            pcm[:blend] = pcm[:blend] * share + self._continued(blend) * (1 - share)
            self._period, self._made = None, 0
        self._history = np.concatenate((self._history, pcm.astype(np.float32)))[-self._kept:]
        return pcm

    def make_up(self, samples: int) -> Pcm:
        """Continue the stream by exactly ``samples``; silence 60 ms after the last that was real."""
        if self._period is None:
            self._period = self._find_period()
        out: Pcm = self._continued(samples).astype(np.int16)
        self._made += samples
        return out

    def _continued(self, samples: int) -> NDArray[np.float32]:
        assert self._period is not None
        place = self._made + np.arange(samples)
        full, silent = _FULL_MS * self._per_ms, _SILENT_MS * self._per_ms
        gain = np.clip((silent - place) / (silent - full), 0, 1).astype(np.float32)
        continued: NDArray[np.float32] = self._period[place % self._period.size] * gain
        return continued

    def _find_period(self) -> NDArray[np.float32]:
        """The last stretch of the stream that repeats best, its end blended so that it joins its beginning."""
        line, compared = self._history, _COMPARED_MS * self._per_ms
        newest = line[-compared:]
        lags = np.arange(_SHORTEST_MS * self._per_ms, _LONGEST_MS * self._per_ms + 1)
        older = np.lib.stride_tricks.sliding_window_view(line, compared)[line.size - compared - lags]
        likeness = older @ newest / np.sqrt(np.einsum("ij,ij->i", older, older) + 1)
        lag = int(lags[int(np.argmax(likeness))])
        period = line[-lag:].copy()
        blend = lag // 4
        share = np.arange(1, blend + 1, dtype=np.float32) / blend
        period[-blend:] = period[-blend:] * (1 - share) + line[-lag - blend:-lag] * share
        return period
