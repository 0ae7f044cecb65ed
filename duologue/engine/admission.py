"""Who may open a session: measured headroom, and a first-come queue for those who must wait.

Pure: every call that needs the time is told it (``now``, in seconds of any steady clock).
"""

from __future__ import annotations

import math
import secrets
from collections import deque
from dataclasses import dataclass

from duologue.engine.config import AdmissionConfig

DURATIONS_KEPT = 32
"""Recent sessions whose length tells how long a waiting caller will wait."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The session may be opened; it counts from now on, until ``Admission.left``."""


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
    """Counts sessions and measures the time their units take.

    A new session is taken when the p99 unit time, grown by what one more session adds on average, stays within
    ``target_load`` of the unit period. The average and not the p99 is added, because callers seldom speak at
    the same moment, and one who listens costs next to nothing. Each measurement is grown from the number of
    sessions there were when it was taken, so that a crowd that comes at once is not let in on the strength of
    what one session cost.
    """

    def __init__(self, config: AdmissionConfig, period_s: float) -> None:
        self._config = config
        self._period_s = period_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=config.window_units)
        self._queue: list[_Place] = []
        self._durations: deque[float] = deque(maxlen=DURATIONS_KEPT)
        self.sessions = 0

    def observe(self, seconds: float) -> None:
        """Note the time one unit took, from its arrival to its decision."""
        self._samples.append((seconds, max(self.sessions, 1)))

    @property
    def p99_s(self) -> float:
        """The p99 unit time of the window, in seconds; 0 when nothing was measured."""
        return _p99([seconds for seconds, _ in self._samples])

    @property
    def waiting(self) -> int:
        """Callers in the queue (those included who may have left it without a word)."""
        return len(self._queue)

    @property
    def has_room(self) -> bool:
        """Whether one more session fits. The first always does."""
        if self.sessions == 0:
            return True
        if not self._samples:
            return True
        costs = sorted(seconds / n for seconds, n in self._samples)
        usual = costs[:-1] or costs
        each = sum(usual) / len(usual)
        grown = _p99([seconds + each * (self.sessions + 1 - n) for seconds, n in self._samples])
        return grown <= self._config.target_load * self._period_s

    def ask(self, now: float, ticket: str | None = None) -> Admitted | Waiting | QueueFull:
        """Ask for a session, with the ticket of an earlier ``Waiting`` if there is one."""
        self._queue = [place for place in self._queue
                       if place.ticket == ticket or now - place.asked_at < self._config.ticket_ttl_s]
        index = next((i for i, place in enumerate(self._queue) if place.ticket == ticket), len(self._queue))
        if index == 0 and self.has_room:
            del self._queue[:1]
            self.sessions += 1
            return Admitted()
        if index == len(self._queue):
            if len(self._queue) >= self._config.max_waiting:
                return QueueFull()
            self._queue.append(_Place(secrets.token_urlsafe(12), now))
        place = self._queue[index]
        place.asked_at = now
        return Waiting(place.ticket, index + 1, self._eta(index + 1))

    def left(self, duration_s: float) -> None:
        """Note that a session ended after ``duration_s``."""
        self.sessions -= 1
        self._durations.append(duration_s)

    def _eta(self, position: int) -> float | None:
        if not self._durations:
            return None
        # n sessions of mean length d end at a rate of n / d.
        return position * sum(self._durations) / len(self._durations) / max(self.sessions, 1)


def _p99(values: list[float]) -> float:
    if not values:
        return 0.0
    # Of few values too the worst is not counted: a process's first unit is slow and says nothing of the next.
    rank = max(min(math.ceil(0.99 * len(values)), len(values) - 1), 1)
    return sorted(values)[rank - 1]
