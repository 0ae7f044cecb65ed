"""How much time a replica has left: measured unit times, and what one more session would make of them. Pure."""

from __future__ import annotations

import math
from collections import deque

from duologue.engine.config import AdmissionConfig


class Headroom:
    """The units of one thinker replica.

    One more session fits when the p99 unit time, grown by what one more adds on average, stays within
    ``target_load`` of the unit period. The average and not the p99 is added, because callers seldom speak at
    the same moment, and one who listens costs next to nothing. Each measurement is grown from the number of
    sessions there were when it was taken, so that a crowd that comes at once is not let in on the strength of
    what one session cost.
    """

    def __init__(self, config: AdmissionConfig, period_s: float) -> None:
        self._config = config
        self._period_s = period_s
        self._samples: deque[tuple[float, int]] = deque(maxlen=config.window_units)
        self.sessions = 0

    def observe(self, seconds: float) -> None:
        """Note the time one unit took, from its arrival to its decision."""
        self._samples.append((seconds, max(self.sessions, 1)))

    @property
    def p99_s(self) -> float:
        """The p99 unit time of the window, in seconds; 0 when nothing was measured."""
        return _p99([seconds for seconds, _ in self._samples])

    @property
    def fits(self) -> bool:
        """Whether one more session does. The first always does."""
        if self.sessions == 0 or not self._samples:
            return True
        costs = sorted(seconds / n for seconds, n in self._samples)
        usual = costs[:-1] or costs
        each = sum(usual) / len(usual)
        grown = _p99([seconds + each * (self.sessions + 1 - n) for seconds, n in self._samples])
        return grown <= self._config.target_load * self._period_s


def _p99(values: list[float]) -> float:
    if not values:
        return 0.0
    # Of few values too the worst is not counted: a process's first unit is slow and says nothing of the next.
    rank = max(min(math.ceil(0.99 * len(values)), len(values) - 1), 1)
    return sorted(values)[rank - 1]
