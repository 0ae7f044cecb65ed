"""Who may open a session: a first-come queue for those who must wait.

Pure: every call that needs the time is told it (``now``, in seconds of any steady clock).
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from duologue.engine.config import AdmissionConfig

DURATIONS_KEPT = 32
"""Recent sessions whose length tells how long a waiting caller will wait."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The session may be opened."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Ask again with ``ticket``; ``position`` counts from 1, ``eta_s`` is None when nothing is known yet."""

    ticket: str
    position: int
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class QueueFull:
    """As many callers wait already as may."""


@dataclass(slots=True)
class _Place:
    ticket: str
    asked_at: float


class Admission:
    """The queue in front of an engine; ``has_room`` says whether one more session fits now."""

    def __init__(self, config: AdmissionConfig, has_room: Callable[[], bool]) -> None:
        self._config = config
        self._has_room = has_room
        self._queue: list[_Place] = []
        self._durations: deque[float] = deque(maxlen=DURATIONS_KEPT)

    @property
    def waiting(self) -> int:
        """Callers in the queue (those included who may have left it without a word)."""
        return len(self._queue)

    def ask(self, now: float, sessions: int, ticket: str | None = None) -> Admitted | Waiting | QueueFull:
        """Ask for a session beside ``sessions`` open ones, with the ticket of an earlier ``Waiting``, if any."""
        self._queue = [place for place in self._queue
                       if place.ticket == ticket or now - place.asked_at < self._config.ticket_ttl_s]
        index = next((i for i, place in enumerate(self._queue) if place.ticket == ticket), len(self._queue))
        if index == 0 and self._has_room():
            del self._queue[:1]
            return Admitted()
        if index == len(self._queue):
            if len(self._queue) >= self._config.max_waiting:
                return QueueFull()
            self._queue.append(_Place(secrets.token_urlsafe(12), now))
        place = self._queue[index]
        place.asked_at = now
        return Waiting(place.ticket, index + 1, self._eta(index + 1, sessions))

    def left(self, duration_s: float) -> None:
        """Note that a session ended after ``duration_s``."""
        self._durations.append(duration_s)

    def _eta(self, position: int, sessions: int) -> float | None:
        if not self._durations:
            return None
        # n sessions of mean length d end at a rate of n / d.
        return position * sum(self._durations) / len(self._durations) / max(sessions, 1)
