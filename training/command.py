"""The command lines of trainings: of one that goes on where it stopped, and of all steps that make a part."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch


@dataclass(frozen=True, slots=True)
class Step:
    """A module of a part's making."""

    name: str
    folder: bool = True
    """Whether it is told the folder."""
    trains: bool = False
    made: str = ""
    """What it writes into the folder; where that is already, the step is left out."""


def run(module: str, about: str | None, train: Callable[[Path, float], None], minutes: float) -> None:
    """Train in the folder, for the minutes and on the device that the command line of ``module`` says."""
    parser = _parser(module, about)
    parser.add_argument("--minutes", type=float, default=minutes, help="in all: of CPU time, on another device of time")
    arguments = parser.parse_args()
    with arguments.device:
        train(arguments.folder, arguments.minutes)


def every(package: str, about: str | None, steps: Sequence[Step]) -> None:
    """Do ``steps``, each in a process of its own, so that one's memory is free for the next."""
    arguments = _parser(package, about).parse_args()
    for step in steps:
        if step.made and (arguments.folder / step.made).exists():
            continue
        print(f"--- {step.name}", flush=True)
        command = [sys.executable, "-m", f"{package}.{step.name}", *([str(arguments.folder)] if step.folder else []),
                   *(["--device", str(arguments.device)] if step.trains else [])]
        subprocess.run(command, check=True)


def _parser(module: str, about: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", type=_device, default="cpu", help="what torch computes on: cpu, cuda, cuda:1")
    return parser


def _device(name: str) -> torch.device:
    try:
        torch.empty(0, device=name)
    except (AssertionError, RuntimeError) as error:
        raise argparse.ArgumentTypeError(f"there is no {name} here: {error}") from error
    return torch.device(name)
