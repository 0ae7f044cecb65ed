"""The command line of a training that goes on where it stopped."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path


def run(module: str, about: str | None, train: Callable[[Path, float], None], minutes: float) -> None:
    """Train in the folder and for the CPU minutes that the command line of ``module`` says."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=minutes, help="CPU time in all")
    arguments = parser.parse_args()
    train(arguments.folder, arguments.minutes)
