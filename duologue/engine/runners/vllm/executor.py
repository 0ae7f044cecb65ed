"""Where vLLM's worker runs: inside the engine process."""

from __future__ import annotations

from vllm.v1.executor.uniproc_executor import UniProcExecutor


class InEngineProcess(UniProcExecutor):  # type: ignore[misc]
    """One worker, in the engine process, on a CPU too.

    vLLM puts a CPU's worker into a process of its own, for the sake of pinning its threads. A resumable request's
    whole sequence would then cross between them at every segment.
    """
