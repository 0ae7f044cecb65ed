"""How a stage runs a decoder of a duplex checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

import torch

from duologue.engine.models.duplex.checkpoint import Checkpoint, CheckpointOptions, load
from duologue.engine.runners import opening
from duologue.engine.runners.base import Runner

Part = Literal["thinker", "talker"]


class RunnerOptions(CheckpointOptions, opening.RunnerOptions):
    """Where the decoder comes from and what runs it."""


def open_runner(part: Part, checkpoint: Checkpoint, options: RunnerOptions) -> Runner:
    """Open the runner that ``options`` name over ``part``; raises ``ConfigError`` when it cannot be opened."""
    source = CheckpointOptions.model_validate(options.model_dump(include=set(CheckpointOptions.model_fields)))
    return opening.open_runner(checkpoint.thinker if part == "thinker" else checkpoint.talker,
                               partial(_tensors, source, part), options)


def _tensors(source: CheckpointOptions, part: Part, device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    return load(source).tensors(part, device)
