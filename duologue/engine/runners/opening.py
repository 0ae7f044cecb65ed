"""Which runner executes a decoder, on what, and how it is opened."""

from __future__ import annotations

from typing import Literal

import torch
from pydantic import Field

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Runner
from duologue.engine.runners.torch.runner import TorchOptions, TorchRunner, find_device
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.weights import Weights
from duologue.strict import Strict


class RunnerOptions(Strict):
    """Options of a stage that runs a decoder: where it runs, and what it may take there."""

    runner: Literal["torch", "vllm"] = "torch"
    """``vllm`` needs the package of that name."""
    torch: TorchOptions = TorchOptions()
    threads: int = Field(default=1, gt=0)
    """CPU threads that torch may use in the stage's process. Stages work at the same time: on two cores the tiny
    pipeline takes a third more CPU with two threads each, which wait for each other."""
    vllm: VllmOptions = VllmOptions()


def open_runner(decoder: DecoderConfig, weights: Weights, options: RunnerOptions) -> Runner:
    """Open the runner that ``options`` name, no longer in its sessions than the decoder goes.

    Raises ``ConfigError`` when it cannot be opened.
    """
    longest = decoder.max_position_embeddings
    if options.runner == "torch":
        torch.set_num_threads(options.threads)
        given = options.torch
        if "max_length" not in given.model_fields_set:
            given = given.model_copy(update={"max_length": min(given.max_length, longest)})
        return TorchRunner(decoder, weights(find_device(given.device)), given)
    stock = options.vllm
    if "max_model_len" not in stock.model_fields_set:
        stock = stock.model_copy(update={"max_model_len": min(stock.max_model_len, longest)})
    try:
        from duologue.engine.runners.vllm.runner import VllmRunner
    except ModuleNotFoundError as error:
        raise ConfigError(f"runner: vllm needs the package {error.name!r}: install duologue[vllm], or set "
                          f"runner to torch") from None
    return VllmRunner(decoder, weights, stock)
