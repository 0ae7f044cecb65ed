"""Codec chunk windows: how a growing row of codec frames is cut for a streaming decoder.

A small first window lets speech begin early, larger ones after it cost less per frame. Every frame is decoded
as new exactly once; a decoder that looks back gets the frames before a window again, as left context whose
samples it throws away.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.engine.config import ChunkingConfig


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
    """Plans the windows of one reply; one planner a reply."""

    def __init__(self, config: ChunkingConfig) -> None:
        self._config = config
        self._arrived = 0
        self._planned = 0
        self._finished = False

    def push(self, n_frames: int) -> list[Window]:
        """Count ``n_frames`` more frames; returns the windows that are full now, in order."""
        if n_frames < 0:
            raise ValueError(f"cannot take {n_frames} frames")
        if self._finished:
            raise ValueError("the reply's frames are finished")
        self._arrived += n_frames
        windows = []
        while self._arrived - self._planned >= (size := self._next_size()):
            windows.append(self._cut(size))
        return windows

    def finish(self) -> list[Window]:
        """No more frames come; returns the window of the tail, or nothing when the last one ended there."""
        self._finished = True
        tail = self._arrived - self._planned
        return [self._cut(tail)] if tail else []

    def _next_size(self) -> int:
        if self._planned == 0:
            return self._config.initial_codec_chunk_frames
        return self._config.codec_chunk_frames

    def _cut(self, size: int) -> Window:
        start = self._planned
        self._planned += size
        return Window(start, self._planned, min(self._config.codec_left_context_frames, start))
