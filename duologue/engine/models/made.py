"""Weights and tokenizers that are made up: what stands for a checkpoint where there is none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def noise(name: str, size: tuple[int, ...], seed: int, device: torch.device, mean: float, deviation: float) \
        -> torch.Tensor:
    """Make normal values, float32, for the tensor called ``name``.

    The same name and seed give the same numbers on the same kind of device.
    """
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=7).digest()
    generator = torch.Generator(device).manual_seed(int.from_bytes(digest))
    return torch.randn(size, generator=generator, device=device).mul_(deviation).add_(mean)


def byte_tokenizer(special: Mapping[str, int], size: int) -> Tokenizer:
    """Make a tokenizer of ``size`` ids in which text is one token a byte (ids 0 to 255) and ``special`` are special.

    The other ids are never made from text, but decode to a made-up word each, so that whatever a random model says has
    a text.
    """
    vocabulary = dict(special) | {byte: id for id, byte in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    taken = set(vocabulary.values())
    vocabulary |= {_word(id): id for id in range(size) if id not in taken}
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(sorted(special, key=lambda name: special[name]))
    return made


def _word(id: int) -> str:
    letters = ""
    while id:
        id, digit = divmod(id, 26)
        letters += chr(ord("a") + digit)
    return f"Ġ{letters}"


def write_json(file: Path, value: dict[str, Any]) -> None:
    """Write ``value`` as people read it."""
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
