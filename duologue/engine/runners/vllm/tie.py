"""The engine process does not outlive the stage process."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal a process gets when the thread that started it ends."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Goes with vLLM's config (``additional_config``) to the engine process, and ties it to the stage process there.

    vLLM's engine process notices the end of the one that started it only if that ends in good order.
    """

    stage_process: int

    def compute_hash(self) -> str:
        """Nothing that is compiled depends on it."""
        return ""

    def __reduce__(self) -> tuple[Callable[[int], Tie], tuple[int]]:
        return tied, (self.stage_process,)


def tied(stage_process: int) -> Tie:
    """Have the kernel kill this process, if it is another, when the stage process ends, however that comes about."""
    if os.getpid() != stage_process:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
        if os.getppid() != stage_process:
            os._exit(1)
    return Tie(stage_process)
