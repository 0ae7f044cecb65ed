"""Opens a duplex checkpoint, stored or random: its configs, its tokenizer, its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from pydantic import BaseModel
from tokenizers import Tokenizer

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex import layout, random, talker_layout
from duologue.engine.models.duplex.config import DecoderConfig, DuplexConfig
from duologue.engine.models.duplex.layout import Part
from duologue.engine.models.stored import SourceOptions, Tensors, checked, json_object, read

_Config = TypeVar("_Config", bound=BaseModel)


class CheckpointOptions(SourceOptions):
    """Where a duplex checkpoint comes from."""

    size: random.Size = "tiny"
    """Of random weights."""


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
                      lambda part, device: read(folder / part / "model.safetensors", device,
                                                layout.tensors(part, config, thinker, talker)))


def _config(file: Path, kind: type[_Config]) -> _Config:
    value = json_object(file, "a duplex checkpoint")
    wanted = kind.model_fields["model_type"].default
    if value.get("model_type") != wanted:
        raise ConfigError(f"{file}: model_type is {value.get('model_type')!r}; only {wanted!r} can be run here")
    return checked(file, value, kind)


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
