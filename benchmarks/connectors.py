"""The three connectors side by side: messages a second, and the time from a message's making to its filing.

``python -m benchmarks.connectors [--messages N]``: a talker and a codec stage in the processes that a server starts,
joined within one process, by shared memory, and by way of the hub. For the rate the talker sends as fast as it is
allowed; for the times it sends one message every 5 ms, which is what a call's stages do at most.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import machine
from duologue.engine import Engine, PipelineConfig, TurnEnd, TurnStatus, Unit

UNIT_MS = 80
PERIOD_S = 0.005
CONNECTORS = ("local", "shm", "socket")


@dataclass(frozen=True, slots=True)
class Payload:
    """What one message holds."""

    name: str
    rows: int
    width: int
    dtype: str

    @property
    def size(self) -> int:
        """Bytes of it."""
        return self.rows * self.width * np.dtype(self.dtype).itemsize


PAYLOADS = (Payload("hidden rows, 20 x 4096 float32", 20, 4096, "float32"),
            Payload("codes, 25 x 1 int32", 25, 1, "int32"), Payload("codes, 25 x 16 int32", 25, 16, "int32"))


def pipeline(connector: str, payload: Payload, count: int, period_s: float, results: Path) -> PipelineConfig:
    """A pipeline whose talker sends ``count`` messages over ``connector``."""
    stages = "benchmarks.connector_stages"
    return PipelineConfig.model_validate({
        "name": "connectors", "unit_ms": UNIT_MS, "output_rate": 24000,
        "stages": [
            {"name": "thinker", "role": "thinker", "model": stages, "process": "mind", "options": {"role": "thinker"}},
            {"name": "talker", "role": "talker", "model": stages, "process": "talk", "options": {
                "role": "talker", "count": count, "rows": payload.rows, "width": payload.width, "dtype": payload.dtype,
                "period_s": period_s}},
            {"name": "codec", "role": "codec", "model": stages, "process": "talk" if connector == "local" else "sound",
             "options": {"role": "codec", "results": str(results)}}],
        "edges": [{"source": "thinker", "target": "talker", "connector": "socket"},
                  {"source": "talker", "target": "codec", "connector": connector}]})


async def times(config: PipelineConfig, results: Path) -> NDArray[np.int64]:
    """When each message was made and when it was filed, (n, 2) in nanoseconds."""
    engine = await Engine.start(config)
    try:
        session = engine.open()
        session.append(Unit(0, np.zeros(config.unit_samples, np.int16), 0.0))
        async for event in session.outputs():
            if isinstance(event, TurnEnd):
                if event.status is not TurnStatus.DONE:
                    raise RuntimeError(f"the messages did not arrive: {event.reason}")
                break
        await session.close()
    finally:
        await engine.close()
    loaded: NDArray[np.int64] = np.load(results)
    return loaded


async def run(count: int) -> None:
    """Print the table."""
    print("| payload | connector | messages/s | MB/s | p50 µs | p99 µs | max µs |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "times.npy"
        for payload in PAYLOADS:
            for connector in CONNECTORS:
                fast = await times(pipeline(connector, payload, count, 0, results), results)
                paced = await times(pipeline(connector, payload, count // 4, PERIOD_S, results), results)
                # The first messages find cold caches and memory that was never touched.
                fast, paced = fast[len(fast) // 10:], paced[len(paced) // 10:]
                rate = (len(fast) - 1) / ((fast[-1, 1] - fast[0, 1]) / 1e9)
                spent = (paced[:, 1] - paced[:, 0]) / 1e3
                print(f"| {payload.name} | {connector} | {rate:,.0f} | {rate * payload.size / 1e6:,.0f} "
                      f"| {np.percentile(spent, 50):,.0f} | {np.percentile(spent, 99):,.0f} | {spent.max():,.0f} |",
                      flush=True)
    print(f"\n_{machine()}; rate: as fast as the edge takes them, {count} messages; "
          f"times: one every {PERIOD_S * 1000:g} ms, {count // 4} messages_")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=4000)
    asyncio.run(run(parser.parse_args().messages))


if __name__ == "__main__":
    main()
