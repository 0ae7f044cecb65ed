"""End of the caller's speech to the first sample of the answer, both heard in the caller's browser.

``python -m benchmarks.voice_to_voice [--turns N]``: real Chromium, the server's own page, spoken questions.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from pathlib import Path

from benchmarks.report import Goal, Table
from tests.harness.answers import number_in
from tests.harness.browser import browser_call
from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.server import running_server
from tests.harness.sound import RATE, first_sound

GOAL = Goal("p50", 700)
TURN_S = 4.5
"""From the end of a question to the next: an answer takes less than three seconds."""


def script(turns: int, seed: int) -> tuple[Microphone, list[int]]:
    """Questions at times that fall anywhere in a unit, and their answers."""
    dice = random.Random(seed)
    microphone, answers = Microphone().pause(5), []
    for _ in range(turns):
        left, right = dice.randint(2, 9), dice.randint(2, 9)
        microphone.say(f"what is {left} plus {right}").pause(TURN_S + dice.random())
        answers.append(left + right)
    return microphone, answers


def measure(recording: Recording, microphone: Microphone, answers: list[int]) -> tuple[list[float], int]:
    """Milliseconds of each turn that was answered, and how many answers were the right ones."""
    said = recording.said(microphone)
    ends = [*(span.start for span in said[1:]), recording.agent.size]
    waits, right = [], 0
    for span, end, answer in zip(said, ends, answers, strict=True):
        reply = recording.agent[:end]
        begin = first_sound(reply, span.end)
        if begin is not None:
            waits.append(1000 * (begin - span.end) / RATE)
            right += number_in(reply[begin:]) == answer
    return waits, right


async def run(turns: int, seed: int) -> None:
    """One call with so many turns."""
    microphone, answers = script(turns, seed)
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as server, browser_call(server.url, microphone) as call:
            recording = await call.until_sample(microphone.length + RATE)
            await call.hang_up()
    waits, right = measure(recording, microphone, answers)
    own = [float(event.body["ms"]) for event in recording.of_type("duologue.latency")
           if event.body["kind"] == "voice_to_voice"]
    table = Table("Voice to voice")
    table.add("at the caller's ear", waits, GOAL)
    table.add("as the server reports it", own)
    table.print()
    print(f"{right} of {turns} answers right, as heard by the independent recogniser")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=14)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.turns, arguments.seed))


if __name__ == "__main__":
    main()
