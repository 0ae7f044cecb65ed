"""The engine: stage processes, the sessions they serve, and who may open one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from duologue.engine.admission import Admission, Admitted, QueueFull
from duologue.engine.brief import Brief
from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import SessionFailed, Tool
from duologue.engine.pipeline import Graph
from duologue.engine.placement import NoRoom, Placement
from duologue.engine.session import EngineSession, Refused
from duologue.engine.speech import SpeechSession, SpeechState
from duologue.engine.state import SessionState
from duologue.engine.supervisor import StageProcess, stage_processes
from duologue.engine.wire import Counted, FromStage, Taken, ToHub, ToStage, ToWorker, session_of
from duologue.metrics import DROPS, IN_STAGES, MOVES

LOG = logging.getLogger(__name__)

_S = TypeVar("_S", bound=EngineSession)


@dataclass(frozen=True, slots=True)
class ProcessHealth:
    """Whether one stage process is up, which stages it holds, and in words what is wrong if it is not."""

    up: bool
    stages: tuple[str, ...]
    detail: str
    pid: int | None


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the engine is: p99 unit time and unit period in seconds, sessions open, callers waiting."""

    p99_s: float
    period_s: float
    sessions: int
    waiting: int
    has_room: bool
    """Whether one more session would be admitted, were nobody waiting."""


class Engine:
    """A running pipeline. It lives on the event loop it was started on."""

    def __init__(self, config: PipelineConfig) -> None:
        self.config = config
        self._graph = Graph(config)
        self._placement = Placement(self._graph.lanes, config.admission, config.unit_s)
        self._admission = Admission(config.admission, lambda: self._placement.why_not() is None)
        self._sessions: dict[str, EngineSession] = {}
        self._opened_at: dict[str, float] = {}
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()
        self._processes = stage_processes(config, self._graph, self)

    @classmethod
    async def start(cls, config: PipelineConfig) -> Engine:
        """Start every stage process and wait until all are ready.

        Raises ``ConfigError``, whose text says what to change, when a stage cannot be started.
        """
        engine = cls(config)
        try:
            async with asyncio.TaskGroup() as group:
                for process in engine._processes.values():
                    group.create_task(process.start())
            engine._check_kv()
        except BaseExceptionGroup as errors:
            await engine.close()
            raise errors.exceptions[0] from None
        except BaseException:
            await engine.close()
            raise
        return engine

    def _check_kv(self) -> None:
        for process in self._processes.values():
            for stage, kv in process.kv.items():
                if kv.positions < kv.session_positions or not kv.sessions:
                    raise ConfigError(
                        f"stage {stage!r}: its KV cache holds {kv.positions} positions, but one session may need "
                        f"{kv.session_positions}: give it more memory, or lower its window")

    def open(self, *, instructions: str = "", voice: str = "", tools: Sequence[Tool] = (), auto_respond: bool = True,
             ticket: str | None = None) -> EngineSession:
        """Open a session; raises ``Refused``, and ``ValueError`` for tools that cannot be called.

        ``auto_respond`` is whether the thinker decides by itself when to speak; if not, it is asked by ``respond``.
        ``ticket`` is that of an earlier refusal for ``capacity``.
        """
        brief = Brief(instructions, voice, tuple(tools), auto_respond)
        now = self._admit(ticket)
        state = SessionState(uuid.uuid4().hex, self.config, self._graph, brief)
        return self._begin(EngineSession, state, now)

    def open_speech(self, *, voice: str = "", ticket: str | None = None) -> SpeechSession:
        """Open a session that only says texts it is given; raises ``Refused`` like ``open``.

        Raises ``ValueError`` where the pipeline cannot say a text.
        """
        state = SpeechState(uuid.uuid4().hex, self.config, self._graph, voice)
        now = self._admit(ticket)
        return self._begin(SpeechSession, state, now)

    def _admit(self, ticket: str | None) -> float:
        """Raise ``Refused``, or return the time at which the caller was admitted."""
        if self._draining:
            raise Refused("draining", "The server is being shut down and takes no new calls.")
        why = self._placement.why_not()
        if why is NoRoom.DOWN:
            gone = [process.name for process in self._processes.values() if process.given_up]
            raise Refused("stage_down", f"Part of the server is down ({', '.join(gone)}); "
                                        f"calls are taken again after it was restarted.")
        now = asyncio.get_running_loop().time()
        answer = self._admission.ask(now, self._placement.sessions, ticket)
        if isinstance(answer, QueueFull):
            raise Refused("queue_full", "The server is full and so is its queue. Please try again later.")
        if not isinstance(answer, Admitted):
            # Where there is room, those before this caller are to have it.
            reason = "others wait before you" if why is None else why.value
            raise Refused("capacity", f"The server is full ({reason}). You are number {answer.position} in the queue.",
                          position=answer.position, eta_s=answer.eta_s, ticket=answer.ticket)
        return now

    def _begin(self, kind: type[_S], state: SessionState, now: float) -> _S:
        """Give a session its places and make it."""
        self._placement.take(state.session)
        try:
            session = kind(state, send=self._send, release=self._release,
                           observe=partial(self._placement.observe, state.session))
        except BaseException:
            self._placement.release(state.session)
            raise
        self._sessions[session.id] = session
        self._opened_at[session.id] = now
        self._empty.clear()
        return session

    def health(self) -> Mapping[str, ProcessHealth]:
        """State of every stage process, by name."""
        return {process.name: ProcessHealth(process.up, process.stages, process.detail, process.pid)
                for process in self._processes.values()}

    def load(self) -> Load:
        """How busy the engine is."""
        return Load(self._placement.p99_s, self.config.unit_s, self._placement.sessions, self._admission.waiting,
                    self._placement.why_not() is None)

    async def drain(self) -> None:
        """Take no new session and return when the last one is over."""
        self._draining = True
        await self._empty.wait()

    async def close(self) -> None:
        """End every session and stage process; idempotent."""
        self._draining = True
        for session in list(self._sessions.values()):
            await session.close()
        await asyncio.gather(*(process.stop() for process in self._processes.values()))

    # --- what the stage processes do ------------------------------------------------------------------------

    def process_up(self, process: StageProcess) -> None:
        """Rebuild the sessions it serves in a process that runs again."""
        self._placement.process_up(process.process, process.replica, process.kv)
        for session in self._on(process):
            with self._alone(session):
                session.restored(process.stages)

    def process_down(self, process: StageProcess, detail: str) -> None:
        """Move its sessions to another replica; those for which there is none wait for it."""
        self._placement.process_down(process.process, process.replica)
        for session in self._on(process):
            with self._alone(session):
                session.lost(process.stages, detail)
                self._move(session, process)

    def process_given_up(self, process: StageProcess, detail: str) -> None:
        """Move its sessions to another replica, be it one that restarts; those for which there is none end."""
        self._placement.process_given_up(process.process, process.replica)
        for session in self._on(process):
            with self._alone(session):
                session.lost(process.stages, detail)
                if not self._move(session, process, waiting=True):
                    session.given_up((), detail)

    def _on(self, process: StageProcess) -> list[EngineSession]:
        return [self._sessions[name] for name in self._placement.on(process.process, process.replica)]

    def _move(self, session: EngineSession, process: StageProcess, *, waiting: bool = False) -> bool:
        """Rebuild a session of a dead process on another replica of its lane; False if none has room.

        With ``waiting`` one that is being restarted will do: ``process_up`` rebuilds the session there.
        """
        lane = self._placement.lane(process.process)
        stages = tuple(stage for name in lane for stage in self._graph.processes[name])
        if not self._placement.can_move(session.id, process.process, waiting=waiting):
            return False
        # What works still of the old replica gives the session back; messages go by the placement.
        session.leave(stages)
        works = self._placement.move(session.id, process.process, waiting=waiting)
        MOVES.labels(process=process.process).inc()
        if works:
            session.restored(stages)
        return True

    def process_said(self, process: StageProcess, message: ToWorker | ToHub) -> None:
        """Route a message to its session."""
        if isinstance(message, Counted):
            counter = IN_STAGES[message.counter]
            (counter.labels(**dict(message.labels)) if message.labels else counter).inc(message.count)
            return
        if not isinstance(message, FromStage | Taken):
            return
        name = message.session if isinstance(message, Taken) else session_of(message.message)
        session = self._sessions.get(name)
        if session is None:
            DROPS.labels(what="message", reason="session_over").inc()
            return
        if isinstance(message, FromStage) and isinstance(message.message, SessionFailed):
            LOG.error("session failed in a stage: %s", message.message.detail,
                      extra={"fields": {"session": name, "stage": message.stage, "process": process.name}})
        with self._alone(session):
            session.receive(message)

    @contextlib.contextmanager
    def _alone(self, session: EngineSession) -> Iterator[None]:
        """End the session at a fault in its bookkeeping, which must not end the loop that serves all of them."""
        try:
            yield
        except Exception:
            LOG.exception("session ended by a fault in the hub", extra={"fields": {"session": session.id}})
            session.given_up((), "internal fault")

    def _send(self, message: ToStage) -> None:
        process = self._graph.nodes[message.stage].process
        self._processes[process, self._placement.replica(session_of(message.message), process)].send(message)

    def _release(self, session: EngineSession) -> None:
        opened_at = self._opened_at.pop(session.id, None)
        if opened_at is None:
            return
        self._sessions.pop(session.id, None)
        self._placement.release(session.id)
        self._admission.left(asyncio.get_running_loop().time() - opened_at)
        if not self._sessions:
            self._empty.set()
