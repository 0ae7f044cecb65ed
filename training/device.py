"""What a training computes on: torch's default device, the CPU unless the command line names another."""

from __future__ import annotations

import time
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def tensor(array: NDArray[Any]) -> Tensor:
    """``array``, of any dtype that torch has, where the training computes."""
    return torch.from_numpy(array).to(torch.get_default_device())


def mixed(*, enabled: bool = True) -> torch.autocast:
    """Products in bfloat16, or, not ``enabled``, as they come."""
    return torch.autocast(torch.get_default_device().type, torch.bfloat16, enabled=enabled)


def clock() -> float:
    """Seconds that the training has worked: of this process on the CPU, which others use too; of time elsewhere."""
    return time.process_time() if torch.get_default_device().type == "cpu" else time.monotonic()
