"""What a checkpoint's folder holds: configs and tensors. Whatever is wrong with one is said with its file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from pydantic import BaseModel, Field, ValidationError, model_validator
from safetensors import SafetensorError, safe_open

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.strict import Strict, faults

if TYPE_CHECKING:
    import torch

_Config = TypeVar("_Config", bound=BaseModel)

Tensors: TypeAlias = "Iterator[tuple[str, torch.Tensor]]"
"""Names and tensors, read or made as they are asked for."""


class SourceOptions(Strict):
    """Where a checkpoint comes from."""

    checkpoint: Path | None = None
    """Its folder. Only safetensors files are read."""
    load_format: Literal["safetensors", "random"] = "safetensors"
    """``random``: no folder; weights are made from ``seed`` where they are used."""
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.checkpoint is None) != (self.load_format == "random"):
            raise ValueError("give a checkpoint's folder (as `checkpoint`, or for all stages as --model DIR), "
                             "or `load_format: random`, and not both")
        return self


def sourced(options: Mapping[str, Any], pipeline: PipelineConfig) -> Mapping[str, Any]:
    """A stage's ``options``, with the pipeline's checkpoint unless they name one of their own.

    Raises ``ConfigError`` when there is a checkpoint for a stage that makes random weights.
    """
    if pipeline.model is None or "checkpoint" in options:
        return options
    if options.get("load_format") == "random":
        raise ConfigError(f"this stage config makes random weights and reads no checkpoint: leave out model "
                          f"({pipeline.model}), or give a stage config that serves one")
    return {**options, "checkpoint": pipeline.model}


def json_object(file: Path, holder: str) -> dict[str, Any]:
    """Read a JSON object; ``holder`` is who has such a file, for the ``ConfigError`` that says it cannot be read."""
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); {holder} has one") from None
    except ValueError as error:
        raise ConfigError(f"{file}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: must hold a JSON object")
    return value


def checked(file: Path, value: dict[str, Any], kind: type[_Config]) -> _Config:
    """Give what ``file`` holds its type; raises ``ConfigError`` with the keys that are wrong."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ConfigError(f"{file}: {faults(error)}") from None


def read(file: Path, device: torch.device, shapes: dict[str, tuple[int, ...]],
         others: Callable[[str], bool] = lambda name: False) -> Tensors:
    """Read the tensors of ``shapes`` from ``file``, or from the shards its index names, in the order of ``shapes``.

    They come one at a time, onto ``device``, in the type they are stored in. Raises ``ConfigError`` when one is absent
    or of another shape, or a tensor is there that is neither among them nor one of the ``others``, which are passed
    over.
    """
    with ExitStack() as stack:
        opened = {}
        for shard in _shards(file):
            try:
                opened[shard] = stack.enter_context(safe_open(shard, "pt", device=str(device)))
            except (OSError, SafetensorError) as error:
                raise ConfigError(f"{shard}: cannot be read as safetensors: {error}") from None
        found = {name: shard for shard, tensors in opened.items() for name in tensors.keys()}  # noqa: SIM118
        for name in found:
            if name not in shapes and not others(name):
                raise ConfigError(f"{found[name]}: has tensor {name}, which its config has no place for")
        for name, expected in shapes.items():
            if name not in found:
                raise ConfigError(f"{file}: lacks tensor {name} {list(expected)}")
            shape = tuple(opened[found[name]].get_slice(name).get_shape())
            if shape != expected:
                raise ConfigError(f"{found[name]}: tensor {name} is {list(shape)}, its config says {list(expected)}")
            yield name, opened[found[name]].get_tensor(name)


def _shards(file: Path) -> list[Path]:
    """Give the files the tensors are in: those an index names, as large checkpoints have one, or ``file``."""
    index = file.with_suffix(".safetensors.index.json")
    if not index.exists():
        return [file]
    try:
        names: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return sorted({file.parent / Path(shard).name for shard in names.values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{index}: not an index of safetensors files") from None
