"""How vLLM is started for a stage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.platforms import current_platform

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.vllm import loader, model
from duologue.engine.runners.vllm.executor import InEngineProcess
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.tie import Tie
from duologue.engine.runners.weights import Weights

GIB = 1 << 30


def engine_args(config: DecoderConfig, weights: Weights, options: VllmOptions, folder: str) -> Any:
    """vLLM's ``AsyncEngineArgs`` for a decoder.

    ``folder`` is for the ``config.json`` that vLLM wants to read and the files of its sockets, until it is up. Raises
    ``ValueError`` for what vLLM refuses.
    """
    model.register()
    (Path(folder) / "config.json").write_text(json.dumps(model.hf_config(config)), encoding="utf-8")
    # What can only be set in the environment is set for this process and the engine it starts. OpenMP reads how many
    # threads it may have before anything else can tell it; vLLM has no config fields for the other two. The worker
    # and the logits processor are written for the V1 model runner, which vLLM takes on a CPU anyway.
    os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    os.environ["VLLM_RPC_BASE_PATH"] = folder
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    return AsyncEngineArgs(
        model=folder,
        load_format=loader.FORMAT,
        model_loader_extra_config={loader.KEY: weights},
        device_ids=None if current_platform.is_cpu() else [options.device],
        dtype=options.dtype,
        skip_tokenizer_init=True,
        generation_config="vllm",
        max_model_len=options.max_model_len,
        max_num_seqs=options.max_num_seqs,
        max_num_batched_tokens=options.max_num_batched_tokens,
        enable_chunked_prefill=True,
        enable_prefix_caching=True,
        block_size=options.block_size,
        **_kv(options),
        gpu_memory_utilization=options.gpu_memory_utilization,
        enforce_eager=options.enforce_eager,
        # With it a request that is parked or preempted while a token is in flight may lose its history.
        async_scheduling=False,
        distributed_executor_backend=InEngineProcess,
        additional_config=Tie(os.getpid()),
        worker_cls="duologue.engine.runners.vllm.worker.Worker",
        logits_processors=["duologue.engine.runners.vllm.rules:Rules"],
        mm_processor_cache_gb=0,
        skip_mm_profiling=True,
        disable_log_stats=True,
        enable_log_requests=False,
    )


def _kv(options: VllmOptions) -> dict[str, Any]:
    if options.kv_positions is None:
        return {}
    # One block is vLLM's own.
    blocks = -(-options.kv_positions // options.block_size) + 1
    # On a CPU an explicit size, any, also spares the warm-up that is to find one.
    size = {"kv_cache_memory_bytes": GIB} if current_platform.is_cpu() else {}
    return {"num_gpu_blocks_override": blocks, **size}
