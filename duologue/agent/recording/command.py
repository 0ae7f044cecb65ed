"""The command ``duologue replay``."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

from duologue.agent.recording.differences import differences
from duologue.agent.recording.replay import Source, replay
from duologue.agent.recording.tape import Recording
from duologue.config import load
from duologue.engine import INPUT_RATE

MAX_LINES = 200
"""Lines of differences that are printed: what comes after them follows from them, as a rule."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's words."""
    parser.add_argument("recording", type=Path, help="a folder that 'duologue serve --record DIR' made in DIR")
    parser.add_argument("--engine", choices=[source.value for source in Source], default=Source.RUN.value,
                        help="run the pipeline again, or take what it said from the tape (default: run)")
    parser.add_argument("--config", default=None, metavar="FILE",
                        help="replay under this stage config instead of the one the call was held under")


def run(recording: Path, engine: str, config: str | None) -> int:
    """Replay a call and print how it differs; returns 0 when it does not, 1 when it does. Raises ``ConfigError``."""
    tape = Recording(recording)
    other = load(config) if config is not None else None
    began = time.monotonic()
    replayed = asyncio.run(replay(tape, Source(engine), pipeline=other.pipeline if other else None,
                                  conversation=other.conversation if other else None))
    took = time.monotonic() - began
    seconds = len(tape.audio("caller")) / INPUT_RATE
    found = list(differences(tape, replayed))
    for each in found[:MAX_LINES]:
        print(each)
    if len(found) > MAX_LINES:
        print(f"... and {len(found) - MAX_LINES} lines more")
    if tape.sheet.dropped is None:
        print("The server was killed in this call, so its tape ends early.", file=sys.stderr)
    elif tape.sheet.dropped:
        print(f"{tape.sheet.dropped} entries are missing from the tape, because the disk was too slow: what follows "
              f"the first of them differs.", file=sys.stderr)
    verdict = "with differences" if found else "without a difference"
    print(f"{seconds:.1f} s of a call replayed in {took:.1f} s, {verdict}.", file=sys.stderr)
    return 1 if found else 0
