"""The course of a training: for some CPU time in all, over as many runs as it takes, with a file to go on from."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from training import device

_LEAST = 0.02
"""Share of the learning rate that the end is trained with."""


class Optimizer(Protocol):
    """One of torch, or several that are stepped as one."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        """Take a state."""
        ...


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let ``optimizer`` step with this learning rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate


def weights(file: Path, name: str) -> dict[str, Tensor]:
    """The weights that a training keeps in ``file`` under ``name``, on the CPU."""
    found: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)[name]
    return found


class Course:
    """Trains ``model``, whose weights ``file`` holds under ``name``, for ``minutes`` with earlier runs': of CPU time,
    and on another device of time.

    What there is in ``file`` is gone on from, also with another end: how fast is learnt depends on the share of the
    time that is gone. A training asks ``goes_on`` before each step, takes ``share`` of its learning rate, says
    ``stepped`` after it, and ``end`` behind the last.
    """

    def __init__(self, file: Path, name: str, model: nn.Module, optimizer: Optimizer, minutes: float, *, warm_up: int,
                 save_s: float) -> None:
        """``warm_up``: steps in which the learning rate rises; ``save_s``: seconds between two reports."""
        self._file, self._name, self._model, self._optimizer = file, name, model, optimizer
        self._warm_up, self._save_s, self._limit = warm_up, save_s, minutes * 60
        self.step, spent = 0, 0.0
        """Steps done."""
        if file.exists():
            saved = torch.load(file, map_location="cpu", weights_only=True)
            model.load_state_dict(saved[name])
            optimizer.load_state_dict(saved["optimizer"])
            self.step, spent = saved["step"], saved["spent_s"]
        self._began, self._saved_at = device.clock() - spent, time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds of work, earlier runs' counted."""
        return device.clock() - self._began

    @property
    def gone(self) -> float:
        """Share of the time that is gone."""
        return self.spent / self._limit

    @property
    def share(self) -> float:
        """Share of the learning rate for the next step: it rises, then falls in a line."""
        return min(1.0, (self.step + 1) / self._warm_up) * max(_LEAST, 1 - self.gone)

    def goes_on(self) -> bool:
        """Whether there is time for another step."""
        return self.spent < self._limit

    def stepped(self, report: Callable[[], str]) -> None:
        """Count a step; now and then save, and print what ``report`` says."""
        self.step += 1
        if time.monotonic() - self._saved_at > self._save_s:
            self._saved_at = time.monotonic()
            self._save()
            print(f"{self._place()}: {report()}", flush=True)

    def end(self, report: str) -> None:
        """Save, and print ``report``."""
        self._save()
        print(f"end: {self._place()}: {report}", flush=True)

    def _place(self) -> str:
        return f"{self.spent / 60:.1f} min, step {self.step}"

    def _save(self) -> None:
        """Write the file; it is whole at any moment."""
        part = self._file.with_suffix(".part")
        torch.save({self._name: self._model.state_dict(), "optimizer": self._optimizer.state_dict(), "step": self.step,
                    "spent_s": self.spent}, part)
        part.replace(self._file)


class Recent:
    """Losses since they were last reported."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._losses: list[tuple[float, ...]] = []

    def add(self, *losses: float) -> None:
        """Count a step's."""
        self._losses.append(losses)

    def means(self) -> str:
        """Their means, by name; they are forgotten."""
        means = np.mean(self._losses, axis=0) if self._losses else np.full(len(self._names), np.nan)
        self._losses = []
        return ", ".join(f"{name} {mean:.3f}" for name, mean in zip(self._names, means, strict=True))
