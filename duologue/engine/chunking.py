"""Codec chunk windows: how a growing row of codec frames is cut for a streaming decoder.

A small first window lets speech begin early, larger ones after it cost less per frame. But a large window is only
whole long after a small one has been played, and the caller hears the gap (0.4 to 1.4 s with 4 and then 25 frames of
80 ms). So windows may ramp: what waits is cut at the last moment at which it can still be decoded before what was
sent before it has been played. That is the largest window whose production and decoding are over in time, without
guessing how fast frames will come.

Every frame is decoded as new exactly once; a decoder that looks back gets the frames before a window again, as left
context whose samples it throws away. One that looks ahead begins with as much silence as its sound is late, so that a
window is as long as its frames for it too.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import ceil, inf

from duologue.engine.config import ChunkingConfig

NOW = -inf
"""``ChunkPlanner.due`` of a window that waits for nothing."""
_LEAD_SHARE = 0.25
"""Share of the sound already sent that is kept in hand when a window is cut, and not used to make it larger."""
_COSTS = 3
"""Windows whose slowest is what the next one is taken to cost."""


@dataclass(frozen=True, slots=True)
class Window:
    """Decode frames [``start`` - ``left_context``, ``end``) and keep the samples of [``start``, ``end``)."""

    start: int
    end: int
    left_context: int

    @property
    def frames(self) -> int:
        """New frames in the window."""
        return self.end - self.start


class ChunkPlanner:
    """Plans the windows of one reply, one window at a time: ``cut``, decode, ``sent``.

    ``frame_s`` is how long a frame is played, in seconds. Times given to it are seconds of any one steady clock.
    """

    def __init__(self, config: ChunkingConfig, frame_s: float) -> None:
        self._config = config
        self._frame_s = frame_s
        self._arrived = 0
        self._planned = 0
        self._finished = False
        self._open: tuple[Window, float] | None = None
        """The window being decoded and when it was cut."""
        self._played = NOW
        """When what was sent will have been played, if it is played as soon as it is there."""
        self._spare_s = 0.0
        """What is kept in hand of the time until then."""
        self._costs: deque[tuple[int, float]] = deque(maxlen=_COSTS)

    @property
    def waiting(self) -> int:
        """Frames that have not been cut yet."""
        return self._arrived - self._planned

    @property
    def done(self) -> bool:
        """Whether all there will ever be has been cut."""
        return self._finished and not self.waiting

    def push(self, n_frames: int) -> None:
        """Count ``n_frames`` more frames."""
        if n_frames < 0:
            raise ValueError(f"cannot take {n_frames} frames")
        if self._finished:
            raise ValueError("the reply's frames are finished")
        self._arrived += n_frames

    def finish(self) -> None:
        """Note that no more frames come."""
        self._finished = True

    def due(self) -> float | None:
        """From when on ``cut`` gives a window: ``NOW`` for at once, None for not before more frames have come."""
        if not self.waiting or self._open is not None:
            return None
        first = self._planned == 0
        if self._finished or self.waiting >= (self._config.initial_codec_chunk_frames if first
                                              else self._config.codec_chunk_frames):
            return NOW
        if first or not self._config.codec_chunk_ramp:
            return None
        return self._played - self._spare_s - self._cost_s(self.waiting)

    def cut(self, now: float) -> Window | None:
        """The next window, if one is due; ``sent`` is to be called before the one after it."""
        due = self.due()
        if due is None or due > now:
            return None
        start, size = self._planned, self._size(now)
        self._planned += size
        window = Window(start, self._planned, min(self._config.codec_left_context_frames, start))
        self._open = window, now
        return window

    def sent(self, now: float) -> None:
        """Note that the samples of the window last cut have left."""
        if self._open is None:
            raise ValueError("no window is being decoded")
        (window, cut_at), self._open = self._open, None
        self._costs.append((window.frames, now - cut_at))
        self._played = max(self._played, now) + window.frames * self._frame_s
        self._spare_s = max(self._frame_s / 2, (self._played - now) * _LEAD_SHARE)

    def _size(self, now: float) -> int:
        if self._planned == 0:
            return min(self.waiting, self._config.initial_codec_chunk_frames)
        most = min(self.waiting, self._config.codec_chunk_frames)
        if not self._config.codec_chunk_ramp:
            return most
        # Below this a window takes longer to decode than to play, and being late would never end.
        least = min(most, max(1, ceil(self._cost_s(1) / self._frame_s)))
        # Half of what is kept in hand is for a cut that comes late.
        in_time = (size for size in range(most, least, -1)
                   if now + self._cost_s(size) <= self._played - self._spare_s / 2)
        return next(in_time, least)

    def _cost_s(self, size: int) -> float:
        """What a window of ``size`` frames will cost at most, if cost is a constant and so much a frame."""
        return max((cost * max(1.0, size / frames) for frames, cost in self._costs), default=0.0)
