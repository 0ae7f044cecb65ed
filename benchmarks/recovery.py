"""A stage process killed in the middle of a reply: ``python -m benchmarks.recovery [--rounds N] [--config FILE]``.

One caller is being told something, another listens; units come in real time. The process is killed with SIGKILL, and
the time until the reply's next audio, and until the listener's next decision, is taken. With one process of each kind
the sessions wait until it has started again; with two they move to the other at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable

import numpy as np

from benchmarks.report import Goal, Table
from duologue.config import DEFAULT_CONFIG, load
from duologue.engine import (
    CallerText,
    Decision,
    Engine,
    EngineEvent,
    EngineSession,
    PipelineConfig,
    ProcessConfig,
    ReplyAudio,
    TurnEnd,
    TurnStatus,
    Unit,
)

LIMIT_S = 30.0
"""A wait longer than this is a fault."""
ASKED = "count to thirty"
SPOKEN_S = 2.0
"""How much of the reply is there when the process is killed."""


class Caller:
    """Gives a unit of silence every unit period, and keeps when which event came."""

    def __init__(self, session: EngineSession, config: PipelineConfig) -> None:
        self.session = session
        self.events: list[tuple[float, EngineEvent]] = []
        self._config = config
        self._news = asyncio.Event()
        self._tasks = [asyncio.create_task(self._speak()), asyncio.create_task(self._listen())]

    async def _speak(self) -> None:
        began = time.monotonic()
        silence = np.zeros(self._config.unit_samples, np.int16)
        units = 0
        while True:
            self.session.append(Unit(units, silence, speech=0.0))
            units += 1
            await asyncio.sleep(max(0.0, began + units * self._config.unit_s - time.monotonic()))

    async def _listen(self) -> None:
        async for event in self.session.outputs():
            self.events.append((time.monotonic(), event))
            self._news.set()

    async def after(self, since: float, wanted: Callable[[EngineEvent], bool]) -> float:
        """Seconds from ``since`` to the first event after it that is ``wanted``."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                self._news.clear()
                for at, event in self.events:
                    if at >= since and wanted(event):
                        return at - since
                await self._news.wait()

    async def spoken(self, seconds: float) -> int:
        """Wait until so much of the reply to what was asked has come; returns its turn."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                self._news.clear()
                samples: dict[int, int] = {}
                for _, event in self.events:
                    if isinstance(event, ReplyAudio):
                        samples[event.fence.turn] = samples.get(event.fence.turn, 0) + len(event.pcm)
                long = [turn for turn, n in samples.items() if n >= seconds * self._config.output_rate]
                if long and not any(isinstance(event, TurnEnd) and event.turn == long[-1] for _, event in self.events):
                    return long[-1]
                await self._news.wait()

    async def close(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.session.close()


async def one(config: PipelineConfig, process: str) -> tuple[float, float]:
    """Kill one process in a reply; returns seconds to the reply's next sound, and to the listener's next decision."""
    engine = await Engine.start(config)
    callers: list[Caller] = []
    try:
        talking = Caller(engine.open(), config)
        callers.append(talking)
        listening = Caller(engine.open(), config)
        callers.append(listening)
        await listening.after(0.0, lambda event: isinstance(event, Decision))
        talking.session.inject(CallerText(ASKED))
        turn = await talking.spoken(SPOKEN_S)
        victim = next(health for name, health in engine.health().items() if name in (process, f"{process}/0"))
        assert victim.pid is not None
        killed = time.monotonic()
        os.kill(victim.pid, signal.SIGKILL)
        sound = await talking.after(killed, lambda event: isinstance(event, ReplyAudio) and event.fence.turn == turn)
        decision = await listening.after(killed, lambda event: isinstance(event, Decision))
        await talking.after(killed, lambda event: isinstance(event, TurnEnd) and event.turn == turn)
        ends = [event for _, event in talking.events if isinstance(event, TurnEnd) and event.turn == turn]
        if [event.status for event in ends] != [TurnStatus.DONE]:
            raise AssertionError(f"the reply ended {ends}")
        return sound, decision
    finally:
        for caller in callers:
            await caller.close()
        await engine.close()


async def measure(config: PipelineConfig, rounds: int) -> None:
    """Print the table."""
    table = Table(f"From kill -9 to sound again ({config.name} pipeline)")
    names = list(dict.fromkeys(stage.process for stage in config.stages))
    for replicas in (1, 2):
        used = config.model_copy(update={
            "processes": {name: ProcessConfig(replicas=replicas) for name in names},
            # The second caller is to be let in whatever the first one's greeting cost.
            "admission": config.admission.model_copy(update={"target_load": 1.0, "window_units": 1})})
        for name in names:
            taken = [await one(used, name) for _ in range(rounds)]
            kind = f"{name}, {replicas} of a kind"
            table.add(f"{kind}: the reply's next audio", [1000 * sound for sound, _ in taken], Goal("max", 2000))
            table.add(f"{kind}: the other caller's next decision", [1000 * decision for _, decision in taken],
                      Goal("max", 2000))
    table.print()


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--config", default=DEFAULT_CONFIG)
    words = parser.parse_args()
    asyncio.run(measure(load(words.config).pipeline, words.rounds))


if __name__ == "__main__":
    main()
