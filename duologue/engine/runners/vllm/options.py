"""What is set of vLLM, in its own terms where it has them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from duologue.strict import Strict


class VllmOptions(Strict):
    """Options of :class:`~duologue.engine.runners.vllm.runner.VllmRunner`."""

    device: int = Field(default=0, ge=0)
    """Index of the GPU, of those the process may use; a CPU build has none."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of weights, KV and activations."""
    max_model_len: int = Field(default=4096, ge=2)
    """Longest session, counted with the token that is sampled last and not fed."""
    max_num_seqs: int = Field(default=8, ge=1)
    """Sessions that hold KV at once: vLLM gives a parked session a slot like a running one."""
    max_num_batched_tokens: int = Field(default=2048, ge=1)
    """Positions of one step, all sessions together."""
    block_size: int = Field(default=32, ge=16, multiple_of=16)
    """Positions of a KV block; the CPU kernels want a multiple of 32."""
    kv_positions: int | None = Field(default=None, ge=1)
    """Positions of all sessions' KV together; without it vLLM takes ``gpu_memory_utilization`` of the memory."""
    gpu_memory_utilization: float = Field(default=0.9, gt=0, le=1)
    """Share of the GPU's memory (of the machine's, on a CPU) for weights and KV. Stages that share a GPU share this."""
    threads: int = Field(default=1, gt=0)
    """CPU threads of the engine's process. Stages work at the same time, and threads that wait for each other turn."""
    enforce_eager: bool = False
    """No compilation and no CUDA graphs: starts sooner, decodes slower."""
