"""The engine's process and the stage's live and die together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.engine.runners.vllm.runner import EngineDied

PATIENCE_S = 120.0


def children(pid: int) -> set[int]:
    """Processes started by ``pid``, and by those."""
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | children(child)
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except FileNotFoundError:
        return ""


def engine_of(pid: int) -> int:
    """The engine's process: the child that is not Python's resource tracker."""
    engines = [child for child in children(pid) if "resource_tracker" not in command(child)]
    assert len(engines) == 1, engines
    return engines[0]


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while left := {pid for pid in pids if running(pid)}:
        assert time.monotonic() < deadline, {pid: command(pid) for pid in left}
        time.sleep(0.1)


@pytest.fixture
def folder() -> Iterator[Path]:
    """For temporary files; its name is short, since names of sockets must be."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.fixture
def stage(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with (folder / "errors").open("w") as errors, subprocess.Popen(
            [sys.executable, "-m", "tests.engine.runners.vllm.stage_process"],
            stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, "TMPDIR": str(folder)}) as process:
        yield process
        process.kill()


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert any(line.strip() == "ready" for line in process.stdout), "it ended before it was ready"


def test_nothing_is_left_when_a_stage_process_is_killed(stage: subprocess.Popen[str], folder: Path) -> None:
    shared = set(Path("/dev/shm").iterdir())
    wait_until_ready(stage)
    processes = children(stage.pid)
    assert engine_of(stage.pid) in processes
    stage.send_signal(signal.SIGKILL)
    stage.wait()
    wait_until_gone(processes)
    assert set(Path("/dev/shm").iterdir()) <= shared
    assert not [path for path in folder.rglob("*") if path.is_socket()]


@pytest.mark.parametrize("moment", ["starts", "runs"])
def test_a_tied_process_ends_with_a_stage_process_that_is_killed(moment: str, folder: Path) -> None:
    """Also when it is killed before the other process could tie itself."""
    with subprocess.Popen([sys.executable, "-m", "tests.engine.runners.vllm.tied_process", folder / "go"],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        started = int(process.stdout.readline())
        if moment == "runs":
            (folder / "go").touch()
            assert process.stdout.readline() == "tied\n"
        process.kill()
    assert running(started) or moment == "runs"
    (folder / "go").touch()
    wait_until_gone({started})


def test_the_end_of_the_engine_is_the_end_of_the_stage_process(stage: subprocess.Popen[str], folder: Path) -> None:
    wait_until_ready(stage)
    os.kill(engine_of(stage.pid), signal.SIGKILL)
    assert stage.wait(PATIENCE_S) == 1
    last = (folder / "errors").read_text().strip().splitlines()
    assert any(line.startswith("vLLM is gone, and the KV of 1 sessions with it:") for line in last[-5:])


def test_the_end_of_the_engine_is_no_failed_step() -> None:
    """A stage process takes an exception for its sessions' failure, and would go on."""
    assert issubclass(EngineDied, SystemExit)
    assert not issubclass(EngineDied, Exception)
