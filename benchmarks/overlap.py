"""Overlapped stages against stages one after the other: ``python -m benchmarks.overlap``.

Real stage processes, the same replies both ways; only ``async_chunk`` differs. Units of silence are given as fast as
they are decided, so that the stages' own work is what is measured and not the caller's clock. The embedded pipeline
tells stories that it is asked for in writing. The duplex pipeline has random weights, each stage a process, and says
what it likes; with real sizes on a GPU: ``--size minicpmo45 --device cuda``.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from statistics import median

import numpy as np

from benchmarks.report import Table
from duologue.config import load
from duologue.engine import (
    CallerText,
    Decision,
    Engine,
    EngineSession,
    PipelineConfig,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    Unit,
)

REPLY_S = 120.0
"""A reply that takes longer than this is a fault."""


SAMPLING = {"listen_bias": -100.0, "turn_eos_bias": 1.0}
"""Makes the random thinker speak, some seconds at a time."""

Reply = Callable[[Engine, int], Awaitable[tuple[float, float, float]]]


class Caller:
    """Is silent, and hears one reply after the other."""

    def __init__(self, session: EngineSession, config: PipelineConfig) -> None:
        self.session = session
        self._stream = session.outputs()
        self._rate = config.output_rate
        self._silence = np.zeros(config.unit_samples, np.int16)
        self._units = 0
        self._decided = 0

    def _go_on(self) -> None:
        """Give a unit of silence, unless one is being decided."""
        if self._decided == self._units:
            self.session.append(Unit(self._units, self._silence, speech=0.0))
            self._units += 1

    async def hear(self) -> tuple[float, float, float]:
        """Hear a reply to its end; returns the times to its first and its last audio, and its length, in seconds.

        Units are given until all of it is written.
        """
        begun, first, last, samples, written = time.perf_counter(), 0.0, 0.0, 0, False
        self._go_on()
        async with asyncio.timeout(REPLY_S):
            async for event in self._stream:
                if isinstance(event, Decision):
                    self._decided += 1
                elif isinstance(event, ReplyText):
                    written = event.last
                elif isinstance(event, ReplyAudio) and len(event.pcm):
                    last = time.perf_counter() - begun
                    first = first or last
                    samples += len(event.pcm)
                elif isinstance(event, TurnEnd):
                    break
                if not written:
                    self._go_on()
        return first, last, samples / self._rate


async def embedded_reply(engine: Engine, number: int) -> tuple[float, float, float]:
    """A story, asked for once the greeting is over."""
    caller = Caller(engine.open(), engine.config)
    await caller.hear()
    caller.session.inject(CallerText("tell me a story"))
    times = await caller.hear()
    await caller.session.close()
    return times


async def duplex_reply(engine: Engine, number: int) -> tuple[float, float, float]:
    """What the random thinker says first, which depends on its instructions."""
    caller = Caller(engine.open(instructions=f"Reply number {number}."), engine.config)
    times = await caller.hear()
    await caller.session.close()
    return times


async def compare(config: PipelineConfig, reply: Reply, count: int) -> None:
    """The table of one pipeline. The two sides take turns, so that a busy machine is busy for both."""
    names = {False: "one after the other", True: "overlapped"}
    times: dict[bool, list[tuple[float, float, float]]] = {False: [], True: []}
    async with AsyncExitStack() as stack:
        engines = {}
        for overlapped in names:
            engines[overlapped] = await Engine.start(config.model_copy(update={"async_chunk": overlapped}))
            stack.push_async_callback(engines[overlapped].close)
        for number in range(count + 1):
            for overlapped, engine in engines.items():
                measured = await reply(engine, number)
                if number:  # The first one warms up.
                    times[overlapped].append(measured)
    before, after = ([sound for _, _, sound in side] for side in times.values())
    # The embedded talker makes its phrases of what text it has, which moves a pause or two.
    if not np.allclose(before, after, rtol=0.01):
        raise SystemExit(f"{config.name}: the two sides did not say the same: {before} and {after} s")
    table = Table(f"{config.name}: {count} replies of {min(before):.1f} to {max(before):.1f} s of speech")
    for what, place in (("first", 0), ("last", 1)):
        for overlapped, name in names.items():
            table.add(f"to the {what} audio, {name}", [1000 * each[place] for each in times[overlapped]])
    table.print()
    for what, place in (("first", 0), ("last", 1)):
        change = median(with_overlap[place] / without[place] - 1
                        for without, with_overlap in zip(times[False], times[True], strict=True))
        print(f"{config.name}: to the {what} audio {100 * change:+.0f} % (median of the replies' changes)")


def duplex(size: str, device: str) -> PipelineConfig:
    """Random weights, a process for each stage."""
    common = {"load_format": "random", "size": size}
    runner = {"torch": {"device": device, "dtype": "float32" if device == "cpu" else "bfloat16"}}
    return PipelineConfig.model_validate({
        "name": f"duplex ({size}, {device})", "unit_ms": 1000, "output_rate": 24_000,
        "stages": [
            {"name": "thinker", "role": "thinker", "model": "duplex.thinker", "process": "thinker",
             "options": {**common, **runner, "sampling": SAMPLING}},
            {"name": "talker", "role": "talker", "model": "duplex.talker", "process": "talker",
             "options": {**common, **runner}},
            {"name": "codec", "role": "codec", "model": "duplex.codec", "process": "codec",
             "options": {**common, "device": device, "dtype": "float64" if device == "cpu" else "float32"}}],
        "edges": [{"source": "thinker", "target": "talker", "connector": "shm"},
                  {"source": "talker", "target": "codec", "connector": "shm"}],
        "chunking": {"codec_left_context_frames": 9, "codec_chunk_frames": 25},
        "supervision": {"start_timeout_s": 300}})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replies", type=int, default=7)
    parser.add_argument("--pipelines", nargs="+", choices=("embedded", "duplex"), default=["embedded", "duplex"])
    parser.add_argument("--size", choices=("tiny", "minicpmo45"), default="tiny")
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    if "embedded" in arguments.pipelines:
        asyncio.run(compare(load().pipeline, embedded_reply, arguments.replies))
    if "duplex" in arguments.pipelines:
        asyncio.run(compare(duplex(arguments.size, arguments.device), duplex_reply, arguments.replies))


if __name__ == "__main__":
    main()
