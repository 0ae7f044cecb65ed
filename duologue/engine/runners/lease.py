"""Who may hold KV: leases over a runner's blocks and session slots.

A session whose segment runs holds a lease that nobody takes. One that is parked between two segments keeps its KV only
as long as no other needs the room: the one parked longest goes first. Whoever has to wait is served first come, first
served, and a running segment always ends, so everybody is. A stock vLLM left alone with parked sessions that fill its
KV, or its ``max_num_seqs``, waits for ever without a word; and a running session is never preempted here, since all a
segment can grow to is set aside before it starts.

Pure: positions and names in, who may start and who has to go out.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.engine.runners.base import Capacity


class TooLong(ValueError):  # noqa: N818 - the name of the condition
    """No runner of this capacity can ever hold the session; the text says why."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The session's segment may run, once the KV of the sessions in ``evict`` has been given back."""

    session: str
    evict: tuple[str, ...]


class Leases:
    """The KV of one runner."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._blocks = capacity.positions // capacity.block
        self.longest = min(capacity.max_length, self._blocks * capacity.block)
        """Positions one session can have at most."""
        self._running: dict[str, int] = {}
        """Blocks set aside for each session with a segment that runs."""
        self._parked: dict[str, int] = {}
        """Blocks held by each parked session, the one parked longest first."""
        self._queue: dict[str, int] = {}
        """Blocks wanted by each session that waits, in order."""

    @property
    def holders(self) -> frozenset[str]:
        """Sessions that hold KV."""
        return frozenset(self._running | self._parked)

    @property
    def blocks(self) -> int:
        """Blocks that are set aside or held."""
        return sum(self._running.values()) + sum(self._parked.values())

    def ask(self, session: str, positions: int) -> None:
        """Queue for a segment after which the session has at most ``positions``; raises ``TooLong``."""
        if session in self._queue or session in self._running:
            raise ValueError(f"session {session} has a segment already")
        if positions > self.longest:
            raise TooLong(f"the session would grow to {positions} positions, and {self.longest} are the most one can "
                          f"have; shorten its instructions, or set a window so that it slides")
        self._queue[session] = self._count(positions)

    @property
    def can_start(self) -> bool:
        """Whether ``next`` lets one start."""
        return bool(self._queue) and self._evictions(next(iter(self._queue))) is not None

    def next(self) -> Grant | None:
        """Let the first in the queue start, if it can; it runs from now on."""
        if not self._queue:
            return None
        session = next(iter(self._queue))
        evict = self._evictions(session)
        if evict is None:
            return None
        for each in evict:
            del self._parked[each]
        self._parked.pop(session, None)
        self._running[session] = self._queue.pop(session)
        return Grant(session, evict)

    def park(self, session: str, positions: int) -> None:
        """The session's segment is over, and ``positions`` of KV are held for it."""
        del self._running[session]
        self._parked[session] = self._count(positions)

    def cancel(self, session: str) -> bool:
        """Leave the queue; returns whether the session was in it."""
        return self._queue.pop(session, None) is not None

    def forget(self, session: str) -> None:
        """The session holds nothing any more and waits for nothing."""
        for kept in (self._running, self._parked, self._queue):
            kept.pop(session, None)

    def why_waiting(self, session: str) -> str:
        """Say why the session's segment has not started; empty when it does not wait."""
        if session not in self._queue:
            return ""
        ahead = list(self._queue).index(session)
        if ahead:
            return f"{ahead} sessions wait before it"
        if self._evictions(session) is not None:
            return "it is about to start"
        if len(self._running) >= self._capacity.max_sessions:
            return f"all {self._capacity.max_sessions} session slots are running"
        return (f"{sum(self._running.values())} of {self._blocks} KV blocks are set aside for running sessions, "
                f"and it needs {self._queue[session]}")

    def _evictions(self, session: str) -> tuple[str, ...] | None:
        """Who has to go for the session to start; None when not even all of the parked would do."""
        blocks = self._blocks - sum(self._running.values()) - self._queue[session]
        slots = self._capacity.max_sessions - len(self._running) - 1
        others = {name: held for name, held in self._parked.items() if name != session}
        if blocks < 0 or slots < 0:
            return None
        evict = []
        while sum(others.values()) > blocks or len(others) > slots:
            longest = next(iter(others))
            del others[longest]
            evict.append(longest)
        return tuple(evict)

    def _count(self, positions: int) -> int:
        return -(-positions // self._capacity.block)
