"""The caller's audio on its way to the call: what comes at once is given as it comes, what comes too fast is held.

A client sends as fast as it likes, a model hears in real time. Short of a burst nothing is held; beyond it samples are
given at twice their pace, so that a network that was held up is caught up with, and a file that is sent in one go is
heard as a caller would be. No I/O; times are seconds of any steady clock.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from duologue.engine import INPUT_RATE, Pcm

BURST = INPUT_RATE
"""Samples that may come at once: a second, more than networks usually hold up."""

PACE = 2
"""Times real time at which what is beyond it is given."""

FULL = 2 * INPUT_RATE
"""Samples held from which on no more is read."""

QUIET_S = 0.25
"""A client that was silent for so long is not just late: its usual pieces are of 20 to 100 ms."""


class Intake:
    """A bucket that leaks at ``PACE`` times real time."""

    def __init__(self, now: float) -> None:
        self._held: deque[Pcm] = deque()
        self._waiting = 0
        self._room = float(BURST)
        self._filled_at = now
        self._heard_until = now

    @property
    def waiting(self) -> bool:
        """Whether anything is held."""
        return self._waiting > 0

    @property
    def full(self) -> bool:
        """Whether the client is too far ahead to be read from."""
        return self._waiting >= FULL

    def put(self, pcm: Pcm) -> None:
        """Take what the client sent, any number of samples at 16 kHz."""
        if pcm.size:
            self._held.append(pcm)
            self._waiting += pcm.size

    def get(self, now: float) -> Pcm:
        """Give what may be heard by now."""
        self._room = min(BURST, self._room + (now - self._filled_at) * PACE * INPUT_RATE)
        self._filled_at = now
        pieces: list[Pcm] = []
        while self._held and self._room >= 1:
            piece = self._held.popleft()
            if piece.size > self._room:
                self._held.appendleft(piece[int(self._room):])
                piece = piece[:int(self._room)]
            pieces.append(piece)
            self._room -= piece.size
            self._waiting -= piece.size
        given = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
        if given.size:
            self._heard_until = max(now, self._heard_until) + given.size / INPUT_RATE
        return given

    def quiet(self, now: float) -> bool:
        """Whether the client has sent nothing for longer than it takes to be late."""
        return not self._held and now - self._heard_until > QUIET_S

    def drop(self) -> None:
        """Forget what is held."""
        self._held.clear()
        self._waiting = 0
