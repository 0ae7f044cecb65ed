"""The LiveKit door: a worker registered with a LiveKit server, which makes a call of every job it takes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import sys
from collections.abc import Callable
from typing import Any

from livekit.agents import JobRequest
from livekit.agents.job import RunningJobInfo

from duologue.agent.http.host import PartHealth, new_call_id
from duologue.agent.logs import EventLog
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.base import CallMedia, Transport
from duologue.agent.transports.livekit.config import LiveKitConfig
from duologue.agent.transports.livekit.jobs import RoomJobs, RoomServer
from duologue.agent.transports.livekit.projection import wants_own_events, with_own_events
from duologue.agent.transports.livekit.service import RoomService
from duologue.agent.transports.livekit.transport import LiveKitTransport
from duologue.engine import Load, Refused

FULL = 1.0
"""The load of an engine that would not take one more call at once."""

_NOT_FULL = 0.99
_FULL_AS_TOLD = 0.6
"""What the server is told of a full engine; others in proportion. From its ``target_load`` on (0.7 unless configured)
it does not ask a worker. But what it was told may be seconds old, and a room for which nobody was asked stays without
an agent: so it is to ask, and the engine decides."""

_LOAD_WAIT_S = 1.0

_log = EventLog(__name__)


def fullness(load: Load, target_load: float) -> float:
    """How full the engine is, 0 to 1: by what units were measured to take, not by what the machine's CPU does.

    1 if and only if the engine would not take one more call at once.
    """
    if load.waiting or not load.has_room:
        return FULL
    if not load.sessions:
        return 0.0
    return min(load.p99_s / (target_load * load.period_s), _NOT_FULL)


def session_of(metadata: str) -> dict[str, Any]:
    """Return the session object in a dispatch's metadata: JSON as in ``session.update``; empty for any other text."""
    try:
        session = json.loads(metadata)
    except (ValueError, RecursionError):
        return {}
    return session if isinstance(session, dict) else {}


class LiveKitDoor:
    """Lets rooms in. To be made on the event loop that its calls will live on."""

    def __init__(self, config: LiveKitConfig, board: Switchboard, load: Callable[[], Load], target_load: float) -> None:
        """``load`` and ``target_load`` are the engine's."""
        self._config = config
        self._board = board
        self._engine_load = load
        self._target_load = target_load
        self._loop = asyncio.get_running_loop()
        self._service = RoomService(config)
        self._accepted: dict[str, LiveKitTransport] = {}
        self._jobs = RoomJobs(self._launch)
        self._server = RoomServer(
            self._jobs, agent_name=config.agent_name, on_request=self._on_request,
            ws_url=config.url, api_key=config.api_key, api_secret=config.api_secret.get_secret_value(),
            host="127.0.0.1", port=0, load_fnc=self._load_from_thread, load_threshold=math.inf,
            num_idle_processes=0, max_retry=sys.maxsize)
        self._started = asyncio.Event()
        self._server.on("worker_started", self._started.set)
        self._last_load = 0.0
        self._running: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """``livekit``."""
        return "livekit"

    def health(self) -> PartHealth:
        """Whether the LiveKit server knows this worker."""
        if self._server.registered:
            return PartHealth(True)
        return PartHealth(False, f"not registered with the LiveKit server at {self._config.url}: "
                                 "is it up, and are the API key and secret its own?")

    def open(self) -> None:
        """Register with the LiveKit server, and again whenever it was away."""
        self._running = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._server.run()
        except Exception as fault:
            _log.error("worker_failed", fault=fault)
            self._started.set()

    def drain(self) -> None:
        """Tell the LiveKit server to send no more jobs; calls that live go on."""
        if self._draining is None and self._running is not None:
            self._draining = self._loop.create_task(self._drain())

    async def _drain(self) -> None:
        await self._started.wait()
        await self._server.drain(timeout=None)

    async def close(self) -> None:
        """Leave the LiveKit server; idempotent."""
        if self._running is not None:
            await self._started.wait()  # AgentServer cannot be closed while it starts
            await self._server.aclose()
            await asyncio.gather(*(task for task in (self._running, self._draining) if task is not None))
        await self._service.close()

    def _fullness(self) -> float:
        return fullness(self._engine_load(), self._target_load)

    # --- jobs ----------------------------------------------------------------------------------------------

    async def _on_request(self, request: JobRequest) -> None:
        """Take a job if the engine takes a call; if not, another worker gets it."""
        if any(job.running_job.job.room.name == request.room.name for job in self._jobs.processes):
            # A server that was restarted knows nothing of the agent that is on its way back, and asks for a new one.
            _log.info("job_refused", job=request.id, reason="the room has its agent")
            await request.reject(terminate=True)
            return
        if self._fullness() >= FULL:
            await request.reject(terminate=False)
            return
        session = session_of(request.job.metadata)
        call_id = new_call_id("lk")

        async def make(call: CallMedia) -> Transport:
            self._accepted[request.id] = LiveKitTransport(
                call_id, self._config, call, self._service, own_events=wants_own_events(session))
            return self._accepted[request.id]

        try:
            await self._board.take(call_id, make, wishes=with_own_events(session))
        except Refused as refused:
            _log.info("job_refused", job=request.id, reason=refused.reason)
            await request.reject(terminate=False)
            return
        try:
            await request.accept(name="Duologue")
        finally:
            # Nobody launched it: the server gave the job to another worker, or went away.
            if (transport := self._accepted.pop(request.id, None)) is not None:
                transport.dismiss()

    def _launch(self, info: RunningJobInfo) -> LiveKitTransport:
        transport = self._accepted.pop(info.job.id)
        transport.join(info.url, info.token)
        return transport

    def _load_from_thread(self) -> float:
        """Ask on the event loop, where the engine lives: AgentServer asks on a thread of its own."""

        async def ask() -> float:
            return _FULL_AS_TOLD * self._fullness()

        with contextlib.suppress(TimeoutError):  # a busy moment; AgentServer would ask no more if this raised
            self._last_load = asyncio.run_coroutine_threadsafe(ask(), self._loop).result(_LOAD_WAIT_S)
        return self._last_load
