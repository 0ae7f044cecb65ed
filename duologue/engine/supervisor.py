"""One stage process as the hub sees it: started, watched, started again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from duologue.engine.config import ConfigError, PipelineConfig, SupervisionConfig
from duologue.engine.connectors import ShmEdge
from duologue.engine.pipeline import Graph
from duologue.engine.stage import KvBudget
from duologue.engine.wire import (
    READ_BYTES,
    CannotStart,
    Decoder,
    Ping,
    Pong,
    Ready,
    Setup,
    ToHub,
    ToStage,
    ToWorker,
    encode,
)
from duologue.metrics import STAGE_RESTARTS

LOG = logging.getLogger(__name__)
STDERR_LINES = 40
"""Last lines of a worker's output that are kept for the log."""
EXIT_TIMEOUT_S = 2.0
"""Time a worker has to finish its step and leave after its socket was closed."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Numeric libraries start a thread a core in every process unless told otherwise."""


class Watcher(Protocol):
    """Who is told what a stage process does."""

    def process_up(self, process: StageProcess) -> None:
        """It is ready (for the first time, or again)."""

    def process_down(self, process: StageProcess, detail: str) -> None:
        """It died and is being started again."""

    def process_given_up(self, process: StageProcess, detail: str) -> None:
        """It died too often."""

    def process_said(self, process: StageProcess, message: ToWorker | ToHub) -> None:
        """It sent a message."""


class RestartBudget:
    """At most ``max_restarts`` in any ``restart_window_s``."""

    def __init__(self, config: SupervisionConfig) -> None:
        self._config = config
        self._times: deque[float] = deque()

    def take(self, now: float) -> bool:
        """Use one restart at ``now`` (seconds); False when there is none left."""
        while self._times and now - self._times[0] >= self._config.restart_window_s:
            self._times.popleft()
        if len(self._times) >= self._config.max_restarts:
            return False
        self._times.append(now)
        return True


class StageProcess:
    """A worker process with some stages: replica ``replica``, from 0, of the process that the config names.

    ``edges`` are those that join it to other processes directly; it closes them when it is stopped.
    """

    def __init__(self, process: str, replica: int, stages: tuple[str, ...], config: PipelineConfig, watcher: Watcher,
                 *, name: str, edges: tuple[ShmEdge, ...] = ()) -> None:
        self.process = process
        self.replica = replica
        self.name = name
        """What it is called where people read it: with its number, if there are several."""
        self.stages = stages
        self.kv: Mapping[str, KvBudget] = {}
        """What the stages that hold KV have of it, known once it is ready."""
        self.up = False
        self.given_up = False
        self.detail = "starting"
        self._config = config
        self._watcher = watcher
        self._edges = edges
        self._budget = RestartBudget(config.supervision)
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._lines: deque[str] = deque(maxlen=STDERR_LINES)
        self._heard = False
        """Whether it has said anything since it was last asked to."""
        self._task: asyncio.Task[None] | None = None
        self._output: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    async def start(self) -> None:
        """Start it and return when it is ready; raises ``ConfigError``. From then on it is kept running."""
        started: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._keep_running(started), name=f"stage process {self.name}")
        await asyncio.wait({self._task, started}, return_when=asyncio.FIRST_COMPLETED)
        await (started if started.done() else self._task)

    def send(self, message: ToStage) -> None:
        """Send without waiting. A process that is not up gets nothing: it is rebuilt from the journals."""
        if self.up and self._writer is not None:
            self._writer.write(encode(message))

    async def stop(self) -> None:
        """End the process; idempotent."""
        try:
            if self._task is not None:
                self._task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._task
        finally:
            edges, self._edges = self._edges, ()
            for edge in edges:
                edge.close()

    async def _keep_running(self, started: asyncio.Future[None]) -> None:
        while True:
            try:
                detail = await self._run_once(started)
            except (ConfigError, OSError) as error:
                detail = str(error)
            except Exception:
                LOG.exception("the watch over a stage process failed",
                              extra={"fields": {"process": self.name}})
                detail = "the watch over it failed"
            finally:
                was_up, self.up = self.up, False
                await self._reap()
            if not started.done():
                started.set_exception(ConfigError(f"process {self.name!r}: {detail}"))
                return
            self.detail = detail
            LOG.error("stage process died: %s", detail,
                      extra={"fields": {"process": self.name, "stages": self.stages,
                                        "output": list(self._lines)}})
            self._lines.clear()
            if not self._budget.take(asyncio.get_running_loop().time()):
                self.given_up = True
                self._watcher.process_given_up(self, f"process {self.name} died too often")
                return
            STAGE_RESTARTS.labels(process=self.name).inc()
            if was_up:
                self._watcher.process_down(self, f"process {self.name} died and is being restarted")

    async def _run_once(self, started: asyncio.Future[None]) -> str:
        """Spawn the process and serve it until it ends; returns how it ended."""
        reader = await self._spawn()
        decoder = Decoder()
        limit = self._config.supervision.start_timeout_s
        life: asyncio.Task[None] | None = None
        try:
            async with asyncio.timeout(limit) as deadline:
                while data := await self._read(reader):
                    self._heard = True
                    for message in decoder.feed(data):
                        match message:
                            case Ready():
                                deadline.reschedule(None)
                                life = asyncio.create_task(self._watch_life())
                                self.kv = message.kv
                                self.up, self.detail = True, ""
                                self._watcher.process_up(self)
                                if not started.done():
                                    started.set_result(None)
                            case CannotStart():
                                raise ConfigError(message.message)
                            case Pong():
                                pass
                            case _:
                                self._watcher.process_said(self, message)
        except TimeoutError:
            return (f"it was not ready within {limit:g} s; see the log, "
                    f"or raise supervision.start_timeout_s")
        finally:
            if life is not None:
                life.cancel()
        assert self._process is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), EXIT_TIMEOUT_S)
        code = self._process.returncode
        if life is not None and life.done() and not life.cancelled():
            return f"it said nothing for {self._config.supervision.hang_timeout_s:g} s and was killed"
        if code is None:
            return "it closed its socket"
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    async def _watch_life(self) -> None:
        """Ask it to say that it lives, again and again; kill it when it does not, and return."""
        while True:
            self._heard = False
            if self._writer is not None:
                self._writer.write(encode(Ping()))
            for _ in range(4):
                # In parts: when it is the hub that has stood still, the process has time to answer afterwards.
                await asyncio.sleep(self._config.supervision.hang_timeout_s / 4)
                if self._heard:
                    break
            else:
                if self._process is not None:
                    self._process.kill()
                return

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.read(READ_BYTES)
        except (ConnectionResetError, BrokenPipeError):
            return b""

    async def _spawn(self) -> asyncio.StreamReader:
        ours, theirs = socket.socketpair()
        path = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            with theirs:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "duologue.engine.worker_process", str(theirs.fileno()),
                    pass_fds=[theirs.fileno(), *(fd for edge in self._edges for fd in edge.fds)],
                    env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
                    stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT)
            reader, self._writer = await asyncio.open_unix_connection(sock=ours)
        except BaseException:
            ours.close()
            raise
        self._output = asyncio.create_task(self._collect_output(self._process))
        self._writer.write(encode(Setup(self._config.model_dump_json(), self.stages, self._edges)))
        return reader

    async def _collect_output(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        rest = b""
        while data := await process.stdout.read(READ_BYTES):
            *lines, rest = (rest[-READ_BYTES:] + data).split(b"\n")
            for line in lines:
                self._lines.append(line.decode(errors="replace"))
                LOG.debug("stage process wrote: %s", self._lines[-1], extra={"fields": {"process": self.name}})

    async def _reap(self) -> None:
        """Close the socket, which ends the worker, and see to it that it ends."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._process is None:
            return
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), EXIT_TIMEOUT_S)
        finally:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            await self._process.wait()
            if self._output is not None:
                # Its last words are in the pipe until this task has read to the end.
                await asyncio.wait({self._output}, timeout=EXIT_TIMEOUT_S)
                self._output.cancel()
            self._process = self._output = None


def stage_processes(config: PipelineConfig, graph: Graph, watcher: Watcher) -> dict[tuple[str, int], StageProcess]:
    """Every process of a pipeline, by its name in the config and the number of its replica; none is started.

    Replica n of one process is joined with replica n of another. Raises ``ConfigError``.
    """
    edges: dict[tuple[str, int], list[ShmEdge]] = {(name, replica): [] for name, count in graph.replicas.items()
                                                   for replica in range(count)}
    try:
        for edge in config.edges:
            if edge.connector == "shm":
                for replica in range(graph.replicas[graph.nodes[edge.source].process]):
                    made = ShmEdge.create(edge)
                    edges[graph.nodes[edge.source].process, replica].append(made)
                    edges[graph.nodes[edge.target].process, replica].append(made.duplicate())
    except BaseException:
        for made in (made for several in edges.values() for made in several):
            made.close()
        raise
    return {(name, replica): StageProcess(
                name, replica, graph.processes[name], config, watcher,
                name=f"{name}/{replica}" if graph.replicas[name] > 1 else name, edges=tuple(several))
            for (name, replica), several in edges.items()}
