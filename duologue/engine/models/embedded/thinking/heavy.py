"""The same decoder through the runners of the production models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.duplex.layout import decoder_tensors
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import checked, json_object, read
from duologue.engine.runners.base import Runner
from duologue.engine.runners.opening import RunnerOptions, open_runner


def open_heavy(runner: Literal["torch", "vllm"], folder: Path, options: Mapping[str, Any]) -> Runner:
    """Open the stock ``folder`` in this runner; raises ``ConfigError`` when it cannot be opened."""
    file = folder / "config.json"
    config = checked(file, json_object(file, "a decoder"), DecoderConfig)
    wanted = read_options(RunnerOptions, {"runner": runner, runner: options}, f"{runner} runner")
    return open_runner(config, partial(_tensors, folder, config), wanted)


def _tensors(folder: Path, config: DecoderConfig, device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    return read(folder / "model.safetensors", device, decoder_tensors(config))
