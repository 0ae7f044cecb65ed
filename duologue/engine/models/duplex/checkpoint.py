"""Opens a duplex checkpoint, stored or random: its configs, its tokenizer, its tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import torch
from pydantic import BaseModel, Field, ValidationError, model_validator
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex import layout, random, talker_layout
from duologue.engine.models.duplex.config import DecoderConfig, DuplexConfig
from duologue.engine.models.duplex.layout import Part
from duologue.strict import Strict

_Config = TypeVar("_Config", bound=BaseModel)

Tensors = Iterator[tuple[str, torch.Tensor]]
"""Names and tensors, read or made as they are asked for."""


class CheckpointOptions(Strict):
    """Where a duplex checkpoint comes from."""

    checkpoint: Path | None = None
    """Its folder. Only safetensors files are read."""
    load_format: Literal["safetensors", "random"] = "safetensors"
    """``random``: no folder; weights of ``size`` are made from ``seed`` where they are used."""
    size: random.Size = "tiny"
    seed: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.checkpoint is None) != (self.load_format == "random"):
            raise ValueError("give either `checkpoint` or `load_format: random`")
        return self


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """An open checkpoint. ``folder`` is None when its weights are random."""

    config: DuplexConfig
    thinker: DecoderConfig
    talker: DecoderConfig
    tokenizer: Tokenizer
    folder: Path | None
    _tensors: Callable[[Part, torch.device], Tensors]

    def tensors(self, part: Part, device: torch.device | str = "cpu") -> Tensors:
        """Give every tensor of ``part`` on ``device``, one at a time, in the type it is stored in.

        Raises ``ConfigError`` when one is absent, too many or of another shape.
        """
        return self._tensors(part, torch.device(device))


def load(options: CheckpointOptions) -> Checkpoint:
    """Open the checkpoint that ``options`` name; raises ``ConfigError`` with the file and what was expected."""
    if options.checkpoint is None:
        made = random.shape(options.size)
        return Checkpoint(made.config, made.thinker, made.talker, random.tokenizer(made), None,
                          lambda part, device: random.tensors(part, made, options.seed, device))
    folder = options.checkpoint
    config = _config(folder / "config.json", DuplexConfig)
    thinker = _config(folder / "thinker" / "config.json", DecoderConfig)
    talker = _config(folder / "talker" / "config.json", DecoderConfig)
    _check_agreement(folder, config, thinker, talker)
    return Checkpoint(config, thinker, talker, _tokenizer(folder / "tokenizer.json"), folder,
                      lambda part, device: _read(folder / part / "model.safetensors", device,
                                                 layout.tensors(part, config, thinker, talker)))


def _config(file: Path, kind: type[_Config]) -> _Config:
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read ({error.strerror}); a duplex checkpoint has one") from None
    except ValueError as error:
        raise ConfigError(f"{file}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{file}: must hold a JSON object")
    wanted = kind.model_fields["model_type"].default
    if value.get("model_type") != wanted:
        raise ConfigError(f"{file}: model_type is {value.get('model_type')!r}; only {wanted!r} can be run here")
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ConfigError(f"{file}: {faults}") from None


def _check_agreement(folder: Path, config: DuplexConfig, thinker: DecoderConfig, talker: DecoderConfig) -> None:
    """Refuse configs that do not fit each other."""
    if talker.vocab_size != talker_layout.vocabulary(config.codec):
        raise ConfigError(f"{folder / 'talker' / 'config.json'}: vocab_size is {talker.vocab_size}, but the codec's "
                          f"{config.codec.codebook_size} codes make {talker_layout.vocabulary(config.codec)}")
    for name, token in config.tokens:
        if not 0 <= token < thinker.vocab_size:
            raise ConfigError(f"{folder / 'config.json'}: tokens.{name} is {token}, but the thinker's vocab_size is "
                              f"{thinker.vocab_size}")
    for name, decoder in (("thinker", thinker), ("talker", talker)):
        if decoder.num_attention_heads % decoder.num_key_value_heads:
            raise ConfigError(f"{folder / name / 'config.json'}: num_attention_heads "
                              f"({decoder.num_attention_heads}) is no multiple of num_key_value_heads "
                              f"({decoder.num_key_value_heads})")


def _tokenizer(file: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(file))
    except Exception as error:  # The library raises Exception itself.
        raise ConfigError(f"{file}: no tokenizer: {error}") from None


def _read(file: Path, device: torch.device, shapes: dict[str, tuple[int, ...]]) -> Tensors:
    """Read the tensors of ``shapes`` from ``file``, or from the shards its index names, in the order of ``shapes``."""
    with ExitStack() as stack:
        opened = {}
        for shard in _shards(file):
            try:
                opened[shard] = stack.enter_context(safe_open(shard, "pt", device=str(device)))
            except (OSError, SafetensorError) as error:
                raise ConfigError(f"{shard}: cannot be read as safetensors: {error}") from None
        found = {name: shard for shard, tensors in opened.items() for name in tensors.keys()}  # noqa: SIM118
        for name in found:
            if name not in shapes:
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
