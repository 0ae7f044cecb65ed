"""What a caller waits for, door by door: ``python -m benchmarks.doors [--door NAME ...] [--turns N] [--rounds N]``.

The same spoken questions and the same interruptions through each door of the real server, measured at the caller's end:
in the browser's playback, at a telephone's earpiece, behind whatever jitter buffer the caller has. A door is a name,
the words its server is started with, and a caller that plays a whole microphone and hangs up.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.barge_in import interruptions, stop_ms
from benchmarks.report import Goal, Table
from benchmarks.voice_to_voice import measure, script
from tests.harness.baresip import Account, CodecName, baresip
from tests.harness.browser import browser_call
from tests.harness.livekit import KEY, SECRET, LiveKitProcess, livekit_server, room_call
from tests.harness.livekit_agent import agent_in
from tests.harness.livekit_browser import room_page
from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.server import free_port, running_server
from tests.harness.sound import RATE

Talk = Callable[[Microphone], Awaitable[Recording]]
"""Plays a whole microphone in one call, and returns what both sides heard."""


@dataclass(frozen=True, slots=True)
class Door:
    """One way in. ``open`` starts a server in ``folder`` and yields a caller; it may be used for several calls."""

    name: str
    open: Callable[[Path], AbstractAsyncContextManager[Talk]]


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Talk]:
    """Chromium on the server's own page."""
    async with running_server(folder) as server:
        async def talk(microphone: Microphone) -> Recording:
            async with browser_call(server.url, microphone) as call:
                recording = await call.until_sample(microphone.length + RATE)
                await call.hang_up()
                return recording

        yield talk


def telephone(codec: CodecName) -> Callable[[Path], AbstractAsyncContextManager[Talk]]:
    """baresip over UDP, with one codec."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Talk]:
        port = free_port()
        async with running_server(folder, "--sip", f"udp:127.0.0.1:{port}"):
            async def talk(microphone: Microphone) -> Recording:
                with tempfile.TemporaryDirectory(dir=folder) as own:
                    async with baresip(Path(own), Account(port, codec=codec), microphone) as phone:
                        await phone.dial()
                        recording = await phone.until_said(microphone.length + RATE)
                        await phone.hang_up()
                        return recording

            yield talk

    return opened


@asynccontextmanager
async def _rooms(folder: Path) -> AsyncIterator[LiveKitProcess]:
    """A LiveKit server with a worker."""
    program = str(Path(sys.executable).with_name("duologue"))
    async with livekit_server(folder) as livekit, running_server(
        folder, "--url", livekit.url, "--api-key", KEY, "--api-secret", SECRET, command=(program, "livekit"),
    ):
        yield livekit


@asynccontextmanager
async def room(folder: Path) -> AsyncIterator[Talk]:
    """LiveKit's Python SDK in a room, whose jitter buffer is libwebrtc's."""
    async with _rooms(folder) as livekit:
        names = itertools.count()

        async def talk(microphone: Microphone) -> Recording:
            async with room_call(livekit, f"room{next(names)}", microphone) as caller:
                return await caller.until_sample(microphone.length + RATE)

        yield talk


@asynccontextmanager
async def room_in_browser(folder: Path) -> AsyncIterator[Talk]:
    """livekit-client in Chromium, in a room."""
    async with _rooms(folder) as livekit:
        names = itertools.count()

        async def talk(microphone: Microphone) -> Recording:
            async with room_page(livekit, f"page{next(names)}", microphone) as call:
                recording = await call.until_sample(microphone.length + RATE)
                await call.hang_up()
                return recording

        yield talk


def agent(*program: str) -> Callable[[Path], AbstractAsyncContextManager[Talk]]:
    """Somebody's LiveKit agent in a room, with the server as its model; the caller is LiveKit's Python SDK."""

    @asynccontextmanager
    async def opened(folder: Path) -> AsyncIterator[Talk]:
        async with livekit_server(folder) as livekit, running_server(folder) as server:
            names = itertools.count()

            async def talk(microphone: Microphone) -> Recording:
                name = f"agent{next(names)}"
                async with (agent_in(livekit, name, server.url, folder, program),
                            room_call(livekit, name, microphone) as caller):
                    return await caller.until_sample(microphone.length + RATE)

            yield talk

    return opened


DOORS = (
    Door("browser", browser),
    Door("SIP, PCMU", telephone("PCMU/8000/1")),
    Door("SIP, Opus", telephone("opus/48000/2")),
    Door("LiveKit, SDK", room),
    Door("LiveKit, browser", room_in_browser),
    Door("LiveKit agent, our plug-in", agent("tests.harness.livekit_agent")),
    Door("LiveKit agent, stock client", agent("benchmarks.livekit_models", "--how", "stock")),
    Door("LiveKit agent, duplex adapter", agent("benchmarks.livekit_models", "--how", "duplex")),
)


async def run(doors: list[Door], turns: int, rounds: int, seed: int) -> None:
    """Two calls through each door, one that asks and one that interrupts."""
    first, stop = Table("End of speech to first audio, by door"), Table("Interruption to silence, by door")
    answered: list[str] = []
    for door in doors:
        questions, answers = script(turns, seed)
        cuts = interruptions(rounds, seed)
        with tempfile.TemporaryDirectory() as folder:
            async with door.open(Path(folder)) as talk:
                waits, right = measure(await talk(questions), questions, answers)
                recording = await talk(cuts)
        stops = [stop_ms(recording, span.start) for span in recording.said(cuts)[1::2]]
        first.add(door.name, waits, Goal("p50", 700))
        stop.add(door.name, [value for value in stops if value is not None], Goal("p95", 300))
        answered.append(f"{door.name}: {right} of {turns} answers right, "
                        f"{sum(value is None for value in stops)} of {rounds} interruptions met silence")
    first.print()
    stop.print()
    print("\n".join(answered))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--door", action="append", choices=[door.name for door in DOORS], help="default: all")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    doors = [door for door in DOORS if not arguments.door or door.name in arguments.door]
    asyncio.run(run(doors, arguments.turns, arguments.rounds, arguments.seed))


if __name__ == "__main__":
    main()
