"""Tables for what was measured."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure should not exceed, and which: ``p50``, ``p95`` or ``p99`` (of all samples), or ``max``."""

    figure: str
    limit: float


class Table:
    """Rows of samples of one unit of measure, printed with medians and tails."""

    def __init__(self, title: str, unit: str = "ms") -> None:
        self._title = title
        self._unit = unit
        self._rows: list[tuple[str, Sequence[float], Goal | None]] = []

    def add(self, name: str, samples: Sequence[float], goal: Goal | None = None) -> None:
        """Add a row; a row without samples says so."""
        self._rows.append((name, samples, goal))

    def print(self) -> None:
        """Print it as Markdown."""
        print(f"\n### {self._title}\n\n_{machine()}_\n")
        print(f"| {self._unit} | n | min | p50 | p95 | p99 | max | goal |\n|---|---|---|---|---|---|---|---|")
        for name, samples, goal in self._rows:
            if not len(samples):
                print(f"| {name} | 0 | | | | | | not measured |")
                continue
            figures = {f"p{share}": float(np.percentile(samples, share)) for share in (50, 95, 99)}
            figures["max"] = float(np.max(samples))
            verdict = ""
            if goal is not None:
                met = "met" if figures[goal.figure] <= goal.limit else "**missed**"
                verdict = f"{goal.figure} <= {goal.limit:g}: {met}"
            numbers = " | ".join(_round(value) for value in (float(np.min(samples)), *figures.values()))
            print(f"| {name} | {len(samples)} | {numbers} | {verdict} |")
        print(flush=True)


def machine() -> str:
    """CPU, cores this process may use, and load, in words."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines()
             if line.startswith("model name")] if info.exists() else []
    cores = len(os.sched_getaffinity(0))
    return f"{names[0] if names else 'unknown CPU'}, {cores} cores, load {os.getloadavg()[0]:.1f} at the end"


def _round(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}"
