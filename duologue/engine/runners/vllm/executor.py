"""Where vLLM's worker runs: inside the engine process, which does not outlive the stage process.

The engine process imports this module before anything else of its work, since what it is to execute is named here.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal

from vllm.v1.executor.uniproc_executor import UniProcExecutor

PR_SET_PDEATHSIG = 1
"""prctl(2): the signal a process gets when the thread that started it ends."""


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends, however that comes about."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    parent = multiprocessing.parent_process()
    if parent is not None and os.getppid() != parent.pid:
        os._exit(1)


class InEngineProcess(UniProcExecutor):  # type: ignore[misc]
    """One worker, in the engine process, on a CPU too.

    vLLM puts a CPU's worker into a process of its own, for the sake of pinning its threads. A resumable request's
    whole sequence would then cross between them at every segment.
    """


if multiprocessing.parent_process() is not None:
    die_with_parent()
