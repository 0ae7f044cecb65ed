"""Which replica of each lane serves a session: the lease of a place, and of the KV that goes with it. Pure.

A lane is the processes that direct edges join: their replicas go together, and a session is on the same replica of
all of them. A session is admitted when each lane has a replica with room: KV for one more session at its full length,
and time for one more in the lane of the thinker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from duologue.engine.config import AdmissionConfig
from duologue.engine.headroom import Headroom
from duologue.engine.stage import KvBudget


@dataclass(frozen=True, slots=True)
class Lane:
    """Processes whose replicas go together; the first lane has the thinker."""

    processes: tuple[str, ...]
    replicas: int


class NoRoom(Enum):
    """Why a session cannot be placed now."""

    BUSY = "units would be answered too late with one more caller"
    MEMORY = "the calls in progress hold all of the model's memory"
    DOWN = "a part of it is down"


@dataclass(slots=True)
class _Replica:
    headroom: Headroom
    sessions: set[str] = field(default_factory=set)
    down: set[str] = field(default_factory=set)
    """Its processes that are being restarted."""
    lost: set[str] = field(default_factory=set)
    """Its processes that were given up."""
    kv_sessions: dict[str, int] = field(default_factory=dict)
    """How many sessions each of its processes has KV for."""

    @property
    def has_kv(self) -> bool:
        return all(len(self.sessions) < fit for fit in self.kv_sessions.values())


class Placement:
    """The sessions of an engine and their replicas."""

    def __init__(self, lanes: Sequence[Lane], config: AdmissionConfig, period_s: float) -> None:
        self._lanes = tuple(lanes)
        self._config = config
        self._lane_of = {process: n for n, lane in enumerate(lanes) for process in lane.processes}
        self._replicas = [[_Replica(Headroom(config, period_s)) for _ in range(lane.replicas)] for lane in lanes]
        self._places: dict[str, list[int]] = {}

    # --- what replicas can do -------------------------------------------------------------------------------

    def process_up(self, process: str, replica: int, budgets: Mapping[str, KvBudget]) -> None:
        """Note that a process is ready, and the KV that its stages have."""
        at = self._at(process, replica)
        at.down.discard(process)
        fits = [min(budget.sessions, int(budget.positions * self._config.kv_overcommit) // budget.session_positions)
                for budget in budgets.values()]
        if fits:
            at.kv_sessions[process] = min(fits)

    def process_down(self, process: str, replica: int) -> None:
        """Note that a process died and is being restarted."""
        self._at(process, replica).down.add(process)

    def process_given_up(self, process: str, replica: int) -> None:
        """Note that a process is not started again."""
        self._at(process, replica).lost.add(process)

    # --- sessions -------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> int:
        """Sessions that have a place."""
        return len(self._places)

    @property
    def p99_s(self) -> float:
        """The p99 unit time of the busiest thinker replica, in seconds."""
        return max(replica.headroom.p99_s for replica in self._replicas[0])

    def why_not(self) -> NoRoom | None:
        """Why one more session has no room; None when it has."""
        answers = [self._best(n)[1] for n in range(len(self._lanes))]
        return next((answer for answer in answers if answer is not None), None)

    def take(self, session: str) -> None:
        """Give the session its places; raises ``ValueError`` when there is no room."""
        chosen = []
        for n in range(len(self._lanes)):
            index, answer = self._best(n)
            if index is None:
                raise ValueError(f"no room: {answer.value if answer else ''}")
            chosen.append(index)
        self._places[session] = chosen
        for n, index in enumerate(chosen):
            self._enter(session, n, index)

    def release(self, session: str) -> None:
        """Give the session's places back; idempotent."""
        for n, index in enumerate(self._places.pop(session, [])):
            self._leave(session, n, index)

    def replica(self, session: str, process: str) -> int:
        """The replica of ``process`` that serves the session."""
        return self._places[session][self._lane_of[process]]

    def on(self, process: str, replica: int) -> list[str]:
        """The sessions that this replica of ``process`` serves."""
        return sorted(self._at(process, replica).sessions)

    def can_move(self, session: str, process: str, *, waiting: bool = False) -> bool:
        """Whether another replica of the lane of ``process`` works, or is to with ``waiting``, and has room for it.

        A session that is already being served is not turned away for want of time, only for want of KV.
        """
        return self._other(session, process, waiting) is not None

    def move(self, session: str, process: str, *, waiting: bool = False) -> bool:
        """Give the session that replica instead of its own, and say whether it works already.

        Raises ``ValueError`` when the session cannot move.
        """
        lane, index = self._lane_of[process], self._other(session, process, waiting)
        if index is None:
            raise ValueError("no other replica has room")
        self._leave(session, lane, self._places[session][lane])
        self._enter(session, lane, index)
        self._places[session][lane] = index
        return not self._replicas[lane][index].down

    def _other(self, session: str, process: str, waiting: bool) -> int | None:
        lane = self._lane_of[process]
        index, _ = self._best(lane, moving=True)
        if index is None or index == self._places[session][lane] \
                or (self._replicas[lane][index].down and not waiting):
            return None
        return index

    def lane(self, process: str) -> tuple[str, ...]:
        """The processes that move together with ``process``."""
        return self._lanes[self._lane_of[process]].processes

    def observe(self, session: str, seconds: float) -> None:
        """Note the time one unit of the session took."""
        self._replicas[0][self._places[session][0]].headroom.observe(seconds)

    def _at(self, process: str, replica: int) -> _Replica:
        return self._replicas[self._lane_of[process]][replica]

    def _enter(self, session: str, lane: int, index: int) -> None:
        at = self._replicas[lane][index]
        at.sessions.add(session)
        at.headroom.sessions = len(at.sessions)

    def _leave(self, session: str, lane: int, index: int) -> None:
        at = self._replicas[lane][index]
        at.sessions.discard(session)
        at.headroom.sessions = len(at.sessions)

    def _best(self, lane: int, *, moving: bool = False) -> tuple[int | None, NoRoom | None]:
        """The replica with the fewest sessions of those that have room, one that is up before one that restarts."""
        alive = [(index, replica) for index, replica in enumerate(self._replicas[lane]) if not replica.lost]
        if not alive:
            return None, NoRoom.DOWN
        with_kv = [(index, replica) for index, replica in alive if replica.has_kv]
        if not with_kv:
            return None, NoRoom.MEMORY
        free = [(index, replica) for index, replica in with_kv
                if lane > 0 or moving or replica.headroom.fits]
        if not free:
            return None, NoRoom.BUSY
        return min(free, key=lambda at: (bool(at[1].down), len(at[1].sessions), at[0]))[0], None
