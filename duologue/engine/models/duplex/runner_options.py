"""Which runner executes a decoder of a duplex checkpoint, and how it is opened."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.checkpoint import Checkpoint, CheckpointOptions
from duologue.engine.runners.base import Runner
from duologue.engine.runners.torch.runner import TorchOptions, TorchRunner


class RunnerOptions(CheckpointOptions):
    """Options of a stage that runs a decoder."""

    runner: Literal["torch", "vllm"] = "torch"
    """``vllm`` needs the package of that name, and a checkpoint in a folder."""
    torch: TorchOptions = TorchOptions()
    threads: int = Field(default=1, gt=0)
    """CPU threads that torch may use in the stage's process. Stages work at the same time: on two cores the tiny
    pipeline takes a third more CPU with two threads each, which wait for each other."""
    vllm: dict[str, Any] = Field(default_factory=dict)
    """``VllmOptions`` but for ``model``, which is the checkpoint's."""


def open_runner(part: Literal["thinker", "talker"], checkpoint: Checkpoint, options: RunnerOptions,
                tensors: Iterable[tuple[str, torch.Tensor]]) -> Runner:
    """Open the runner that ``options`` name; ``tensors`` are those of ``part``, read only as far as it needs them.

    Raises ``ConfigError`` when it cannot be opened.
    """
    decoder = checkpoint.thinker if part == "thinker" else checkpoint.talker
    if options.runner == "torch":
        torch.set_num_threads(options.threads)
        given = options.torch
        if "max_length" not in given.model_fields_set:
            given = given.model_copy(update={"max_length": min(given.max_length, decoder.max_position_embeddings)})
        return TorchRunner(decoder, tensors, given)
    if checkpoint.folder is None:
        raise ConfigError("runner: vllm reads a checkpoint's files: write one with "
                          "`python -m duologue.engine.models.duplex.random DIR` and name it as `checkpoint`")
    try:
        from duologue.engine.runners.vllm.options import VllmOptions
        from duologue.engine.runners.vllm.runner import VllmRunner
    except ModuleNotFoundError as error:
        raise ConfigError(f"runner: vllm needs the package {error.name!r}: install duologue[vllm], or set "
                          f"runner to torch") from None
    try:
        return VllmRunner(VllmOptions.model_validate({**options.vllm, "model": checkpoint.folder / part}))
    except ValidationError as error:
        raise ConfigError(f"vllm: {error}") from None
    except ValueError as error:
        raise ConfigError(f"vllm: {part} cannot be run: {error}") from None
