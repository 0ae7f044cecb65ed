"""One call to a LiveKit agent for each way it may have Duologue as its model: ``python -m benchmarks.livekit_agents``.

A sum, a count and a story, both cut: what the caller waits for, and what the agent then knows of the cut replies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from benchmarks.barge_in import stop_ms
from benchmarks.doors import DOORS, Door
from tests.harness.microphone import Microphone
from tests.harness.sound import RATE, first_sound

WAYS = [door for door in DOORS if door.name.startswith("LiveKit agent")]


async def measure(door: Door) -> None:
    """Make one call and print what came of it."""
    microphone = (Microphone().pause(6).say("what is seven plus five").pause(4).say("count to thirty").pause(4)
                  .say("stop").pause(3).say("tell me a story").pause(5).say("hold on").pause(3))
    with tempfile.TemporaryDirectory() as folder:
        async with door.open(Path(folder)) as talk:
            recording = await talk(microphone)
        said = recording.said(microphone)
        answer = first_sound(recording.agent, said[0].end)
        waited = None if answer is None else 1000 * (answer - said[0].end) // RATE
        print(f"{door.name}: {waited} ms to the answer, stopped in "
              f"{[stop_ms(recording, said[cut].start) for cut in (2, 4)]} ms")
        for log in _logs(Path(folder)):
            for line in (json.loads(each) for each in log.splitlines() if each.startswith('{"what": "said"')):
                print(f"    {line['role']}{' (interrupted)' if line['interrupted'] else ''}: {line['text']}")


def _logs(folder: Path) -> list[str]:
    return [path.read_text(errors="replace") for path in folder.glob("agent-*.log")]


async def run(ways: list[Door]) -> None:
    """One after another."""
    for way in ways:
        await measure(way)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", action="append", choices=[door.name for door in WAYS], help="default: all")
    chosen = parser.parse_args().way
    asyncio.run(run([door for door in WAYS if not chosen or door.name in chosen]))


if __name__ == "__main__":
    main()
