"""What a training keeps of itself, so that it goes on where it stopped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn


class Optimizer(Protocol):
    """One of torch, or several that are stepped as one."""

    def state_dict(self) -> dict[str, Any]:
        """Its state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        """Take a state."""
        ...


def save(file: Path, name: str, model: nn.Module, optimizer: Optimizer, step: int, cpu_s: float) -> None:
    """Write ``file``, which holds the model's weights under ``name``; it is whole at any moment."""
    part = file.with_suffix(".part")
    torch.save({name: model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "cpu_s": cpu_s}, part)
    part.replace(file)


def resume(file: Path, name: str, model: nn.Module, optimizer: Optimizer) -> tuple[int, float]:
    """Give model and optimizer the state in ``file``; steps done and CPU seconds spent, 0 where there is no file."""
    if not file.exists():
        return 0, 0.0
    saved = torch.load(file, weights_only=True)
    model.load_state_dict(saved[name])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"], saved["cpu_s"]
