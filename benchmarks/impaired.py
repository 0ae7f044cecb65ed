"""Answers and units through a network that loses and delays packets.

``python -m benchmarks.impaired [--questions N]``: one call for each network, a Python peer as the caller, the
same questions in each.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from pathlib import Path

from benchmarks.report import machine
from tests.harness.answers import number_in
from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.peer import peer_call
from tests.harness.server import running_server
from tests.harness.sound import RATE, first_sound, spans

NETWORKS = ((0.0, 0), (0.0, 60), (0.05, 30), (0.1, 60))
UNITS_PER_S = 12.5
"""Of the embedded pipeline (80 ms)."""


async def one(folder: Path, loss: float, jitter_ms: float, questions: int, seed: int) -> str:
    """A row: one call through one network."""
    dice = random.Random(seed)
    asked = [(dice.randint(2, 9), dice.randint(2, 9)) for _ in range(questions)]
    right, waits = 0, []
    async with running_server(folder) as server, ImpairedNetwork(loss, jitter_ms, seed) as network:
        async with peer_call(server.url, Microphone(), network) as call:
            await call.until(lambda so_far: so_far.agent.size > 3 * RATE and not spans(so_far.agent[-RATE:]),
                             "quiet after the greeting")
            for left, other in asked:
                span = await call.say(f"what is {left} plus {other}")
                try:
                    recording = await call.until_answered(span.end, limit_s=12)
                except AssertionError:
                    continue
                number = await asyncio.to_thread(number_in, recording.agent[span.end :])
                right += number == left + other
                begin = first_sound(recording.agent, span.end)
                waits.append(1000 * ((begin or 0) - span.end) / RATE)
            begun = call.recording().of_type("session.created")[0].at / RATE
            units = await server.metric("duologue_units_total")
            seconds = call.samples / RATE - begun
        concealed = await server.metric("duologue_concealed_samples_total")
        up, down = network.up.traffic, network.down.traffic
    median = sorted(waits)[len(waits) // 2] if waits else float("nan")
    return (f"| {loss:.0%}, 0-{jitter_ms:g} ms | {up.lost} / {up.lost + up.passed} | {down.lost} / "
            f"{down.lost + down.passed} | {begun:.1f} | {seconds:.1f} | {units / UNITS_PER_S:.1f} | "
            f"{concealed / 16_000:.2f} | {right} / {questions} | {median:.0f} |")


async def run(questions: int, seed: int) -> None:
    """All networks."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [await one(Path(folder), loss, jitter_ms, questions, seed) for loss, jitter_ms in NETWORKS]
    print(f"\n### Through a bad network\n\n_{machine()}_\n")
    print("| loss, jitter | lost up | lost down | begun after, s | call, s | units, s | concealed, s | answers right | "
          "voice to voice p50, ms |\n|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--seed", type=int, default=11)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.questions, arguments.seed))


if __name__ == "__main__":
    main()
