"""The media path alone: a chirp in the caller's browser, echoed by the server, heard in the browser again.

``python -m benchmarks.mouth_to_ear [--calls N] [--chirps N]``: the product's transport, and stock aiortc beside it
in the same run, without loss and with 1 % of it. Several calls, because how the browser's frames and the server's
lie to each other in time is settled once a call and is worth up to 20 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from benchmarks.report import Goal, Table
from tests.harness.browser import browser_call
from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.server import running_server
from tests.harness.sound import RATE, Sound, Span, locate

GOAL = Goal("p50", 70)
CHIRP_MS = 60
MIN_FIT = 0.5
LONGEST_S = 0.8
SERVERS = {"Duologue": "benchmarks.echo_server", "stock aiortc": "tests.harness.echo_server"}


def chirp() -> Sound:
    """A tone that rises from 500 to 2500 Hz: speech-like for the codec, found to the sample by correlation."""
    seconds = np.arange(CHIRP_MS * RATE // 1000) / RATE
    length = CHIRP_MS / 1000
    phase = 2 * np.pi * (500 * seconds + 2000 * seconds**2 / (2 * length))
    tone: Sound = (0.4 * np.hanning(seconds.size) * np.sin(phase)).astype(np.float32)
    return tone


def script(chirps: int) -> Microphone:
    """A chirp about every second, never at the same place in a 20 ms frame."""
    microphone = Microphone().pause(2.5)
    for number in range(chirps):
        microphone.play(chirp(), f"chirp {number}").pause(0.9 + 0.0037 * (number % 7))
    return microphone


async def measure(module: str, microphone: Microphone, loss: float, calls: int) -> tuple[list[float], int]:
    """Milliseconds from mouth to ear of each chirp that came back in ``calls`` calls, and how many did not."""
    delays: list[float] = []
    lost = 0
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = await stack.enter_async_context(running_server(folder, command=(sys.executable, "-m", module)))
        for _ in range(calls):
            found, missing = await one_call(server.url, microphone, loss)
            delays += found
            lost += missing
    return delays, lost


async def one_call(url: str, microphone: Microphone, loss: float) -> tuple[list[float], int]:
    """The same of one call."""
    async with AsyncExitStack() as stack:
        network = await stack.enter_async_context(ImpairedNetwork(loss, 0, seed=5)) if loss else None
        call = await stack.enter_async_context(browser_call(url, microphone, network))
        recording = await call.until_sample(microphone.length + RATE)
    delays, lost = [], 0
    for span in recording.said(microphone):
        window = Span(span.start, span.end + round(LONGEST_S * RATE))
        at, fit = locate(recording.mic[span.start : span.end], recording.agent, window)
        if fit >= MIN_FIT:
            delays.append(1000 * (at - span.start) / RATE)
        else:
            lost += 1
    return delays, lost


async def run(calls: int, chirps: int) -> None:
    """All servers, all networks."""
    microphone = script(chirps)
    table = Table("Mouth to ear through Chromium, echo instead of a model")
    missing = []
    for loss in (0.0, 0.01):
        for name, module in SERVERS.items():
            delays, lost = await measure(module, microphone, loss, calls)
            table.add(f"{name}, {loss:.0%} loss", delays, GOAL if name == "Duologue" and not loss else None)
            missing.append(f"{name} at {loss:.0%}: {lost}")
    table.print()
    print(f"chirps of {calls * chirps} that never came back: {'; '.join(missing)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=5)
    parser.add_argument("--chirps", type=int, default=4, help="in each call")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.calls, arguments.chirps))


if __name__ == "__main__":
    main()
