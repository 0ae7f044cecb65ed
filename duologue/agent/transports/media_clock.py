"""When the next frame is due, without I/O."""

from __future__ import annotations

from typing import NamedTuple

from duologue.agent.transports.base import FRAME_MS

FRAME_S = FRAME_MS / 1000

MAX_LATE_FRAMES = 3
"""Frames that are sent late, back to back, to catch up; beyond that, media time skips forward. Three frames
(60 ms) are within what receivers buffer anyway; older audio would only delay the rest of the call."""


class Tick(NamedTuple):
    """Frame number ``frame`` of a stream is due at ``due`` (seconds); ``skipped`` frames before it are not sent."""

    frame: int
    due: float
    skipped: int


class MediaClock:
    """One stream's frames, 20 ms apart from ``start``, however late they are asked for."""

    def __init__(self, start: float) -> None:
        """``start`` is the due time of frame 0, in seconds of the clock that ``next`` is given."""
        self._start = start
        self._next = 0

    def next(self, now: float) -> Tick:
        """Return the next frame's tick; if the caller is too late for it, a later frame's."""
        late = int((now - self._start) / FRAME_S + 1e-9) - self._next
        skipped = late if late > MAX_LATE_FRAMES else 0
        frame = self._next + skipped
        self._next = frame + 1
        return Tick(frame, self._start + frame * FRAME_S, skipped)
