"""Onset of an interruption to the last sample of the reply, and nods that must not interrupt.

``python -m benchmarks.barge_in [--rounds N]``: real Chromium, the server's own page; both tracks as heard in
the caller's browser.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from pathlib import Path

from benchmarks.report import Goal, Table
from tests.harness.browser import browser_call
from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.server import ServerProcess, running_server
from tests.harness.sound import RATE, Span, spans

GOAL = Goal("p95", 300)
WORDS = ("stop", "wait a minute", "hold on", "stop talking")
NODS = ("uh huh", "yeah", "okay", "right")
VOICES = ("slt", "awb", "kal16")
NOD_WINDOW = 3 * RATE
"""Samples after a nod in which the reply must have gone on, or was cut by it."""
WINDOW_S = 1.5
"""Sound that begins later than this after an onset is not the reply that was cut, but what followed it."""


def interruptions(rounds: int, seed: int) -> Microphone:
    """Stories and counts that are interrupted after three to four and a half seconds."""
    dice = random.Random(seed)
    microphone = Microphone().pause(5)
    for number in range(rounds):
        microphone.say("tell me a story" if number % 2 else "count to thirty")
        microphone.pause(4 + 1.5 * dice.random())
        microphone.say(WORDS[number % len(WORDS)]).pause(3.5)
    return microphone


def nods(rounds: int) -> Microphone:
    """Stories with one nod in each; the next one is asked for over what is left of the last."""
    microphone = Microphone().pause(5)
    for number in range(rounds):
        microphone.say("tell me a story").pause(4.5)
        microphone.say(NODS[number % len(NODS)], VOICES[number // len(NODS) % len(VOICES)]).pause(3.5)
    return microphone


def stop_ms(recording: Recording, onset: int) -> float | None:
    """From ``onset`` to the reply's last sample; None if the agent was not speaking when it came.

    A reply that fell silent comes back, if at all, as another one after at least 400 ms.
    """
    before = spans(recording.agent[onset - RATE : onset])
    if not before:
        return None
    after = spans(recording.agent[onset : onset + round(WINDOW_S * RATE)], gap_ms=400)
    if not after or after[0].start > RATE * 4 // 10:
        return 0.0
    return 1000 * after[0].end / RATE


async def talk(server: ServerProcess, microphone: Microphone) -> tuple[Recording, list[Span]]:
    """One call; its recording and where each utterance is in it."""
    async with browser_call(server.url, microphone) as call:
        recording = await call.until_sample(microphone.length + RATE)
        await call.hang_up()
    return recording, recording.said(microphone)


async def run(rounds: int, nod_rounds: int, seed: int) -> None:
    """Two calls: one that interrupts, one that nods."""
    with tempfile.TemporaryDirectory() as folder:
        async with running_server(Path(folder)) as server:
            recording, said = await talk(server, interruptions(rounds, seed))
            stops = [stop_ms(recording, span.start) for span in said[1::2]]
            nodding_microphone = nods(nod_rounds)
            nodding, nodded = await talk(server, nodding_microphone)
    own = [float(event.body["ms"]) for event in recording.of_type("duologue.latency")
           if event.body["kind"] == "stop"]
    table = Table("Interruption: onset to the reply's last sample")
    table.add("at the caller's ear", [value for value in stops if value is not None], GOAL)
    table.add("as the server reports it", own)
    table.print()
    cuts = [event.at for event in nodding.of_type("output_audio_buffer.cleared")]
    back: list[float] = []
    verdicts = []
    for utterance, nod in zip(nodding_microphone.utterances[1::2], nodded[1::2], strict=True):
        cut = any(nod.start < at < nod.end + NOD_WINDOW for at in cuts)
        verdicts.append(f"{utterance.text}: {'CUT' if cut else 'went on'}")
        after = spans(nodding.agent[nod.end : nod.end + NOD_WINDOW])
        if after and not cut:
            back.append(1000 * after[0].start / RATE)
    table = Table("Nods over a reply: end of the nod to the reply going on")
    table.add("at the caller's ear", back)
    table.print()
    print(f"nods: {'; '.join(verdicts)}")
    print(f"{sum(value is None for value in stops)} of {rounds} interruptions came while the agent was silent")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--nods", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(run(arguments.rounds, arguments.nods, arguments.seed))


if __name__ == "__main__":
    main()
