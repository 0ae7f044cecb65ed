"""An echo where a call would be, behind the product's own doors."""

from __future__ import annotations

from collections import deque

import numpy as np

from duologue.agent.transports.base import FRAME_MS
from duologue.engine import INPUT_RATE, Pcm

FRAME = INPUT_RATE * FRAME_MS // 1000
PATIENCE = 25
"""Pulls after each of which a whole frame was left over before one is dropped: an echo has no speech to spoil,
and what a moment's jitter left behind would otherwise delay it for the rest of the call."""


class EchoMedia:
    """Gives back what it is fed: a ``CallMedia`` without a model."""

    def __init__(self) -> None:
        self._held: deque[Pcm] = deque()
        self._samples = 0
        self._left_over = 0

    @property
    def output_rate(self) -> int:
        """Samples go out as they came in."""
        return INPUT_RATE

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Hold the caller's samples until they are pulled."""
        self._held.append(pcm)
        self._samples += pcm.size

    def pull(self) -> Pcm:
        """The oldest 20 ms, silence while there are none."""
        if self._samples < FRAME:
            return np.zeros(FRAME, np.int16)
        joined = np.concatenate(self._held)
        frame, rest = joined[:FRAME], joined[FRAME:]
        self._left_over = self._left_over + 1 if rest.size >= FRAME else 0
        if self._left_over >= PATIENCE:
            rest, self._left_over = rest[FRAME:], 0
        self._held = deque([rest])
        self._samples = rest.size
        return frame

    def receive(self, message: str) -> None:
        """An echo takes no messages."""

    def dtmf(self, key: str) -> None:
        """An echo has no keys."""

    def connected(self) -> None:
        """Nothing begins."""

    def gone(self, reason: str) -> None:
        """Nothing is left behind."""
