"""The real server as a process: started, watched, measured, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

START_LIMIT_S = 60.0
"""A start without a healthy answer after so long has failed: twelve times the goal, for a loaded machine."""

LAST_WORDS = 3000
"""Characters of the server's log that a failing test shows."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process below the server's."""

    pid: int
    command: str


class ServerProcess:
    """A running ``duologue serve``."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, log: Path, started: float) -> None:
        self.url = url
        self.log_path = log
        self.ready_s = 0.0
        """Seconds from the start of the process to the first healthy answer."""
        self._process = process
        self._started = started

    @property
    def pid(self) -> int:
        """The server's own process."""
        return self._process.pid

    def log(self) -> str:
        """What it has written so far, both streams."""
        return self.log_path.read_text(errors="replace")

    async def healthy(self) -> bool:
        """Whether ``/healthz`` answers 200."""
        try:
            async with aiohttp.ClientSession() as http, http.get(f"{self.url}/healthz") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples named exactly ``name`` that carry ``labels``; 0 if there is none."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/metrics") as response:
            response.raise_for_status()
            body = await response.text()
        return sum(
            sample.value
            for family in text_string_to_metric_families(body)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    async def metric_reaches(self, name: str, value: float, limit_s: float = 15.0, **labels: str) -> bool:
        """Wait until a metric has ``value``; False if it has not after ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while await self.metric(name, **labels) != value:
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.1)
        return True

    def with_library(self, name: str) -> list[int]:
        """Its processes, and those below it, that have loaded a library whose name holds ``name``."""
        pids = (self.pid, *(child.pid for child in self.children()))
        return [pid for pid in pids if name in Path(f"/proc/{pid}/maps").read_text()]

    def children(self) -> list[Child]:
        """All processes below the server's, by pid."""
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except (FileNotFoundError, ProcessLookupError):
                    continue
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
        below, found = {self.pid}, []
        for pid, parent in sorted(parents.items()):
            if parent in below:
                below.add(pid)
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                found.append(Child(pid, command))
        return found

    async def becomes_healthy(self, limit_s: float = 30.0) -> bool:
        """Wait until ``/healthz`` answers 200; False if it does not within ``limit_s``."""
        deadline = time.monotonic() + limit_s
        while not await self.healthy():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.1)
        return True

    def cpu_s(self) -> float:
        """CPU seconds the server's own process has used (without its children's)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def terminate(self) -> None:
        """Ask it to drain (SIGTERM)."""
        self._process.terminate()

    async def exit_code(self, limit_s: float = 30.0) -> int:
        """Wait for its end. Raises ``TimeoutError`` if it does not come."""
        return await asyncio.wait_for(self._process.wait(), limit_s)

    async def wait_ready(self) -> None:
        """Wait until it is healthy. Raises ``RuntimeError`` if it ends or takes too long."""
        while not await self.healthy():
            if self._process.returncode is not None or time.monotonic() - self._started > START_LIMIT_S:
                raise RuntimeError("the server did not become healthy")
            await asyncio.sleep(0.05)
        self.ready_s = time.monotonic() - self._started

    async def stop(self) -> None:
        """End it and everything below it."""
        if self._process.returncode is None:
            self.terminate()
            with suppress(TimeoutError):
                await self.exit_code(5)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # its own process group: whatever it has left behind
        await self._process.wait()


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on at the moment."""
    return free_ports(1)[0]


def free_ports(count: int) -> tuple[int, ...]:
    """So many TCP ports of 127.0.0.1, one behind the other, that nobody listens on at the moment."""
    while True:
        with ExitStack() as held:
            first = held.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            with suppress(OSError, OverflowError):
                for each in range(port + 1, port + count):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", each))
                return tuple(range(port, port + count))


@asynccontextmanager
async def running_server(
    folder: Path, *arguments: str, command: tuple[str, ...] = (),
) -> AsyncIterator[ServerProcess]:
    """Start ``duologue serve ARGUMENTS`` (or another ``command``) on a free port; wait until it is healthy.

    ``folder`` gets its log.
    """
    port = free_port()
    log = folder / f"server-{port}.log"
    program = command or (str(Path(sys.executable).with_name("duologue")), "serve")
    with log.open("wb") as sink:
        started = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *program, *arguments, "--host", "127.0.0.1", "--port", str(port),
            stdin=asyncio.subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
    server = ServerProcess(process, f"http://127.0.0.1:{port}", log, started)
    try:
        await server.wait_ready()
        yield server
    except BaseException as fault:
        fault.add_note(f"the server's last words:\n{server.log()[-LAST_WORDS:]}")
        raise
    finally:
        await server.stop()
