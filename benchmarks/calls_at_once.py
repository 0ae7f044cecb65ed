"""CPU of one call and of several at once on the embedded pipeline: ``python -m benchmarks.calls_at_once [CONFIG ...]``.

The real server, all its processes counted, and callers over WebRTC who ask, listen, interrupt and ask again. A unit
is late when its decision comes later than the next unit does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.report import Goal, Table
from duologue.config import DEFAULT_CONFIG
from tests.harness.microphone import Microphone
from tests.harness.peer import encode, peer_call
from tests.harness.recording import Recording
from tests.harness.server import ServerProcess, running_server
from tests.harness.sound import RATE, first_sound

CORE = Goal("p50", 500)
"""Of a core, a call with everything on."""
SHIPPED = Path(__file__).parents[1] / "duologue"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Run:
    """What so many calls at once cost: CPU in ms per second and call, units by their fate, answers."""

    cpu_ms: list[float]
    units: float
    late: float
    asked: int
    answered: int


def script(seed: int, turns: int) -> Microphone:
    """Questions, and a story or a count that is interrupted, at times of its own."""
    dice = random.Random(seed)
    microphone = Microphone(dice.choice(("kal16", "awb", "slt"))).pause(4.5 + dice.random())
    for turn in range(turns):
        if turn % 2:
            microphone.say(dice.choice(("tell me a story", "count to fifty"))).pause(4 + dice.random())
            microphone.say("stop").pause(2 + dice.random())
        else:
            left, right = dice.randint(2, 9), dice.randint(2, 9)
            microphone.say(f"what is {left} plus {right}").pause(3 + dice.random())
    return microphone


def cpu_s(server: ServerProcess) -> float:
    """CPU seconds that the server and all processes below it have used."""
    used = 0
    for pid in (server.pid, *(child.pid for child in server.children())):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / _TICKS


async def call(server: ServerProcess, microphone: Microphone, packets: list[bytes]) -> Recording:
    """One caller's whole timeline."""
    async with peer_call(server.url, microphone, packets=packets) as made:
        while made.samples < microphone.length:  # noqa: ASYNC110 - the microphone is a clock
            await asyncio.sleep(0.5)
        return made.recording()


async def decided(server: ServerProcess, unit_ms: int) -> tuple[float, float]:
    """Units decided so far, and those in time."""
    return (await server.metric("duologue_unit_seconds_count"),
            await server.metric("duologue_unit_seconds_bucket", le=str(unit_ms / 1000)))


def hospitable(config: Path) -> dict[str, Any]:
    """``config``, but everybody is let in: this is about what happens then."""
    loaded: dict[str, Any] = yaml.safe_load(config.read_text())
    loaded["pipeline"]["admission"] = {"target_load": 1.0, "window_units": 1}
    return loaded


async def measure(loaded: dict[str, Any], calls: int, turns: int) -> Run:
    """So many ``calls`` at once."""
    microphones = [script(seed, turns) for seed in range(calls)]
    packets = [encode(microphone) for microphone in microphones]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.yaml"
        file.write_text(yaml.safe_dump(loaded))
        async with running_server(Path(folder), str(file)) as server:
            running = [asyncio.create_task(call(server, *each)) for each in zip(microphones, packets, strict=True)]
            samples = list[float]()
            before = cpu_s(server)
            while not all(task.done() for task in running):
                await asyncio.sleep(5)
                now = cpu_s(server)
                samples.append(1000 * (now - before) / 5 / calls)
                before = now
            recordings = [await task for task in running]
            units, in_time = await decided(server, loaded["pipeline"]["unit_ms"])
    answered = sum(answers(*each) for each in zip(recordings, microphones, strict=True))
    asked = sum(len(microphone.utterances) - turns // 2 for microphone in microphones)
    return Run(samples[1:-1], units, units - in_time, asked, answered)


def answers(recording: Recording, microphone: Microphone) -> int:
    """How many things said, but "stop", were answered before the next was."""
    said = recording.said(microphone)
    ends = [*(span.start for span in said[1:]), recording.agent.size]
    return sum(first_sound(recording.agent[:end], span.end + RATE // 20) is not None
               for span, end, utterance in zip(said, ends, microphone.utterances, strict=True)
               if utterance.text != "stop")


async def run(configs: list[Path], most: int, turns: int) -> None:
    """Each config alone and with ``most`` calls, in turn."""
    table = Table("CPU a second and call", "ms")
    lines = list[str]()
    for config in configs:
        for calls in (1, most):
            got = await measure(hospitable(config), calls, turns)
            name = f"{config.stem}, {calls} at once"
            table.add(name, got.cpu_ms, CORE)
            lines.append(f"{name}: {got.late:.0f} of {got.units:.0f} units late, "
                         f"{got.answered} of {got.asked} answered")
    table.print()
    print(*lines, sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    shipped = [SHIPPED / DEFAULT_CONFIG, SHIPPED / "stage_configs" / "embedded-rules.yaml"]
    parser.add_argument("configs", type=Path, nargs="*", default=shipped)
    parser.add_argument("--calls", type=int, default=4, help="at once")
    parser.add_argument("--turns", type=int, default=6, help="of each caller")
    arguments = parser.parse_args()
    asyncio.run(run(arguments.configs, arguments.calls, arguments.turns))


if __name__ == "__main__":
    main()
