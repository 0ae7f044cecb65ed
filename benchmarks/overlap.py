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


SAMPLING = {"speak_bias": 100.0, "turn_eos_bias": 3.0}
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


async def measure(config: PipelineConfig, reply: Reply, count: int) -> list[tuple[float, float, float]]:
    """So many replies, one at a time, after one that warms up."""
    engine = await Engine.start(config)
    try:
        return [await reply(engine, number) for number in range(count + 1)][1:]
    finally:
        await engine.close()


async def compare(config: PipelineConfig, reply: Reply, count: int) -> None:
    """The table of one pipeline."""
    sides = {name: await measure(config.model_copy(update={"async_chunk": overlapped}), reply, count)
             for name, overlapped in (("one after the other", False), ("overlapped", True))}
    lengths = [[round(sound, 2) for _, _, sound in times] for times in sides.values()]
    if lengths[0] != lengths[1]:
        raise SystemExit(f"{config.name}: the two sides did not say the same: {lengths} s")
    table = Table(f"{config.name}: {count} replies of {min(lengths[0]):.1f} to {max(lengths[0]):.1f} s of speech")
    for what, place in (("to the first audio", 0), ("to the last audio", 1)):
        for name, times in sides.items():
            table.add(f"{what}, {name}", [1000 * each[place] for each in times])
    table.print()
    for what, place in (("first", 0), ("last", 1)):
        before, after = (median(each[place] for each in times) for times in sides.values())
        print(f"{config.name}: median to the {what} audio {100 * (after / before - 1):+.0f} %")


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
