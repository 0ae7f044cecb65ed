"""Duplex checkpoints of random weights: ``python -m duologue.engine.models.duplex.random DIR [--size tiny]``.

They say nothing sensible, and cost what a trained one of their size costs. ``tiny`` runs anywhere; ``minicpmo45`` has
the thinker and the talker of MiniCPM-o 4.5 (9 B parameters with its encoders, which are not here).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from duologue.engine.models.duplex import layout, talker_layout
from duologue.engine.models.duplex.config import CodecConfig, DecoderConfig, DuplexConfig, UnitTokens
from duologue.engine.models.duplex.layout import Part
from duologue.engine.models.made import byte_tokenizer, noise, write_json

Size = Literal["tiny", "minicpmo45"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The configs of a checkpoint, and the type its decoders are stored in."""

    config: DuplexConfig
    thinker: DecoderConfig
    talker: DecoderConfig
    dtype: torch.dtype


def shape(size: Size) -> Shape:
    """Give the configs of a named size."""
    return _SHAPES[size]


def tensors(part: Part, shape: Shape, seed: int, device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    """Make the tensors of ``PART/model.safetensors`` one by one on ``device``, float32.

    The same seed gives the same numbers on the same kind of device.
    """
    for name, size in layout.tensors(part, shape.config, shape.thinker, shape.talker).items():
        yield name, noise(f"{part}/{name}", size, seed, device, *_distribution(name, size))


def _distribution(name: str, size: tuple[int, ...]) -> tuple[float, float]:
    """Mean and deviation of a tensor's values: what keeps signals at level 1 through the layers.

    Two are larger, so that greedy decoding does not repeat itself: attention is sharp enough for positions far back
    to be told apart (``q_norm``, ``k_norm``), and logits are spread (``lm_head``).
    """
    if name.endswith("bias"):
        return 0.0, 0.0
    if len(size) == 1:
        return (2.0, 0.2) if name.endswith(("q_norm.weight", "k_norm.weight")) else (1.0, 0.1)
    if name.endswith(("embed_tokens.weight", "emb_text.weight", "embedding.weight")):
        return 0.0, 1.0
    if name.startswith("upsample."):
        return 0.0, 1 / sqrt(2 * size[0])
    fan_in = size[1] * (size[2] if len(size) == 3 else 1)
    return 0.0, (3.0 if name == "lm_head.weight" else 1.0) / sqrt(fan_in)


def tokenizer(shape: Shape) -> Tokenizer:
    """Make a tokenizer of bytes with the tokens of a unit."""
    tokens = shape.config.tokens
    return byte_tokenizer({"<unit>": tokens.unit, "</unit>": tokens.unit_end, "<|listen|>": tokens.listen,
                           "<|speak|>": tokens.speak, "<|turn_eos|>": tokens.turn_eos,
                           "<|chunk_eos|>": tokens.chunk_eos, "<|im_start|>": tokens.im_start,
                           "<|im_end|>": tokens.im_end}, shape.thinker.vocab_size)


def write(folder: Path, size: Size, seed: int = 0) -> None:
    """Write a checkpoint into ``folder``, which is made."""
    made = shape(size)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", made.config.model_dump(mode="json"))
    words = tokenizer(made)
    words.save(str(folder / "tokenizer.json"))
    for name, decoder in (("thinker", made.thinker), ("talker", made.talker)):
        (folder / name).mkdir(exist_ok=True)
        write_json(folder / name / "config.json", {
            **decoder.model_dump(mode="json"), "architectures": ["Qwen3ForCausalLM"], "hidden_act": "silu",
            "attention_bias": False, "torch_dtype": str(made.dtype).removeprefix("torch."),
            "rope_parameters": {"rope_type": "default", "rope_theta": decoder.rope_theta}})
    for part in layout.PARTS:
        dtype = made.dtype if part in ("thinker", "talker") else torch.float32
        (folder / part).mkdir(exist_ok=True)
        save_file({name: tensor.to(dtype) for name, tensor in tensors(part, made, seed, torch.device("cpu"))},
                  folder / part / "model.safetensors", metadata={"format": "pt"})


def _decoder(layers: int, hidden: int, heads: tuple[int, int], head: int, ffn: int, vocabulary: int,
             positions: int) -> DecoderConfig:
    return DecoderConfig(vocab_size=vocabulary, hidden_size=hidden, intermediate_size=ffn, num_hidden_layers=layers,
                         num_attention_heads=heads[0], num_key_value_heads=heads[1], head_dim=head,
                         max_position_embeddings=positions)


def _tiny() -> Shape:
    tokens = UnitTokens(unit=256, unit_end=257, listen=258, speak=259, turn_eos=260, chunk_eos=261, im_start=262,
                        im_end=263)
    codec = CodecConfig(codebook_size=254, hidden_size=64, upsample=(8, 6, 5, 4), kernel=7, frame_rate=25,
                        sample_rate=24_000)
    return Shape(DuplexConfig(unit_ms=1000, codes_per_unit=25, tokens=tokens, codec=codec),
                 _decoder(4, 128, (4, 2), 32, 256, 272, 4096),
                 _decoder(3, 96, (3, 3), 32, 192, talker_layout.vocabulary(codec), 1024), torch.float32)


def _minicpmo45() -> Shape:
    tokens = UnitTokens(unit=151_683, unit_end=151_684, listen=151_705, speak=151_706, turn_eos=151_717,
                        chunk_eos=151_718, im_start=151_644, im_end=151_645)
    codec = CodecConfig(codebook_size=6561, hidden_size=512, upsample=(8, 6, 5, 4), kernel=7, frame_rate=25,
                        sample_rate=24_000)
    return Shape(DuplexConfig(unit_ms=1000, codes_per_unit=25, tokens=tokens, codec=codec),
                 _decoder(36, 4096, (32, 8), 128, 12_288, 151_748, 40_960),
                 _decoder(20, 768, (12, 12), 64, 3072, talker_layout.vocabulary(codec), 4096), torch.bfloat16)


_SHAPES: dict[Size, Shape] = {"tiny": _tiny(), "minicpmo45": _minicpmo45()}


def main() -> None:
    """Write a checkpoint as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m duologue.engine.models.duplex.random",
                                     description="Write a duplex checkpoint of random weights.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(_SHAPES), default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.size, arguments.seed)


if __name__ == "__main__":
    main()
