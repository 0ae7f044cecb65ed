"""Runs a scenario of sipp, an independent implementation of SIP, against a user agent."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

SCENARIOS = Path(__file__).parent / "scenarios"


@dataclass(frozen=True)
class Ran:
    status: int
    """0: every step of the scenario was taken."""
    errors: str


def free_port() -> int:
    """A UDP and TCP port that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream:
        stream.bind(("127.0.0.1", 0))
        port: int = stream.getsockname()[1]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.bind(("127.0.0.1", port))
            return port


async def sipp(scenario: str, directory: Path, *, to: int | None = None, port: int | None = None, tcp: bool = False,
               password: str = "secret") -> Ran:
    """Run a scenario once: as a caller of port ``to``, or as a phone at ``port`` that is called."""
    errors = directory / f"{scenario}.log"
    arguments = ["-sf", str(SCENARIOS / f"{scenario}.xml"), "-m", "1", "-i", "127.0.0.1",
                 "-p", str(port or free_port()), "-s", "line", "-au", "alice", "-ap", password, "-nostdin",
                 "-timeout", "30s", "-timeout_error", "-recv_timeout", "15000", "-trace_err",
                 "-error_file", str(errors), "-nr", "-t", "t1" if tcp else "u1"]
    if to is not None:
        arguments.insert(0, f"127.0.0.1:{to}")
    process = await asyncio.create_subprocess_exec(
        "sipp", *arguments, cwd=directory, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT)
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode is not None
    return Ran(process.returncode, (errors.read_text() if errors.exists() else "") + output.decode()[-2000:])
