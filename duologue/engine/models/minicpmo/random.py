"""MiniCPM-o 4.5 checkpoints of random weights: ``python -m duologue.engine.models.minicpmo.random DIR [--size tiny]``.

They say nothing sensible, but take turns: they listen and speak, and come to an end. ``tiny`` runs anywhere;
``released`` has the release's dimensions and costs what it costs, but for its eyes, which nothing here opens.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import log, prod, sqrt
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.made import byte_tokenizer, noise, write_json
from duologue.engine.models.minicpmo import layout
from duologue.engine.models.minicpmo.config import VERSION, AudioConfig, MiniCPMOConfig, TtsConfig
from duologue.engine.models.minicpmo.layout import PARTS, PREFIX, Part
from duologue.engine.models.minicpmo.token2wav import layout as token2wav_layout
from duologue.engine.models.minicpmo.token2wav.config import TINY, Token2wavConfig
from duologue.engine.models.minicpmo.tokens import NAMES, SpecialTokens

Size = Literal["tiny", "released"]

Made = Iterator[tuple[str, torch.Tensor]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a checkpoint is made to."""

    config: MiniCPMOConfig
    token2wav: Token2wavConfig
    tokens: SpecialTokens
    dtype: torch.dtype
    """Type of all tensors but token2wav's, which are float32."""
    shard_bytes: int
    """Size that a file of the checkpoint reaches before the next one begins."""


def shape(size: Size) -> Shape:
    """Give the configs of a named size."""
    return _SHAPES[size]


def tensors(part: Part, shape: Shape, seed: int, device: torch.device) -> Made:
    """Make the tensors of ``part``, named as in ``layout``, one by one on ``device``, float32.

    The same seed gives the same numbers on the same kind of device.
    """
    for name, size in layout.tensors(part, shape.config).items():
        tensor = noise(f"{part}/{name}", size, seed, device, *_distribution(name, size))
        _teach(part, name, tensor, shape)
        yield name, tensor


def token2wav_tensors(shape: Shape, seed: int, device: torch.device) -> Made:
    """Make the tensors of the codec likewise, named as in ``token2wav.layout.tensors``."""
    for name, size in token2wav_layout.tensors(shape.token2wav).items():
        yield name, noise(f"token2wav/{name}", size, seed, device, *token2wav_layout.distribution(name, size))


def _distribution(name: str, size: tuple[int, ...]) -> tuple[float, float]:
    """Mean and deviation of a tensor's values: what keeps signals at level 1 through the layers.

    Two are larger, so that greedy decoding does not repeat itself: attention is sharp enough for positions far back
    to be told apart (``q_norm``, ``k_norm``), and logits are spread (the heads).
    """
    if name.endswith("bias"):
        return 0.0, 0.1
    if name.endswith("original0"):
        return _SPREAD, 0.1
    if len(size) == 1:
        return (2.0, 0.2) if name.endswith(("q_norm.weight", "k_norm.weight")) else (1.0, 0.1)
    if name in ("model.embed_tokens.weight", "emb_code.0.weight"):
        return 0.0, 1.0
    if name == "apm.embed_positions.weight":
        return 0.0, 0.3
    fan_in = size[1] * (size[2] if len(size) == 3 else 1)
    return 0.0, (_SPREAD if name == "lm_head.weight" else 1.0) / sqrt(fan_in)


_SPREAD = 3.0
"""Deviation of a token's logit."""

_FLAG = 0
"""The channel of the thinker's states that says whether a token was read last or the caller's audio."""


def _teach(part: Part, name: str, tensor: torch.Tensor, shape: Shape) -> None:
    """Put into a random tensor what makes turns: whether to listen is asked after audio, whether to end after words.

    No layer of the thinker writes to the channel ``_FLAG``, so it comes to the head as the embedding set it, and there
    makes the tokens that take turns likelier where they belong. ``likely`` is the logit that the likeliest of all
    others has. The talker's end is likelier than any other code, or its last units would never find one.
    """
    tokens = shape.tokens
    flag = sqrt(shape.config.llm.hidden_size) / 2
    likely = _SPREAD * sqrt(2 * log(shape.config.llm.vocab_size))
    match part, name.removesuffix(".weight"):
        case "thinker", "model.embed_tokens":
            tensor[:, _FLAG] = flag
            tensor[tokens.turn_eos, _FLAG] = 3 * flag
        case "thinker", "lm_head":
            tensor[:, _FLAG] = 0
            for token, likelihood in ((tokens.listen, -1.0), (tokens.chunk_eos, 0.9), (tokens.turn_eos, 0.6)):
                tensor[token, _FLAG] = likelihood * likely / flag
        case "thinker", layer if layer.endswith(("o_proj", "down_proj")):
            tensor[_FLAG] = 0
        case "hearing", "audio_projection_layer.linear2":
            tensor[_FLAG] = 0
        case "hearing", "audio_projection_layer.linear2.bias":
            tensor[_FLAG] = -flag
        case "talker", "head_code.0.parametrizations.weight.original0":
            tensor[shape.config.tts.eos] *= 2


def tokenizer(shape: Shape) -> Tokenizer:
    """Make a tokenizer of bytes with the special tokens."""
    return byte_tokenizer({name: getattr(shape.tokens, field) for field, name in NAMES.items()},
                          shape.config.llm.vocab_size)


def write(folder: Path, size: Size, seed: int = 0) -> None:
    """Write a checkpoint into ``folder``, which is made."""
    made = shape(size)
    (folder / "token2wav").mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", _released_form(made))
    tokenizer(made).save(str(folder / "tokenizer.json"))
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>",
        "model_max_length": made.config.llm.max_position_embeddings, "clean_up_tokenization_spaces": False,
        "bad_token_ids": [id for id in made.tokens.forbidden if id != made.tokens.tts_pad]})
    write_json(folder / "token2wav" / "config.json", made.token2wav.model_dump(mode="json"))
    _write_shards(folder, made, seed)
    codec = dict(token2wav_tensors(made, seed, torch.device("cpu")))
    for file in token2wav_layout.FILES:
        save_file({name.removeprefix(f"{file}."): tensor for name, tensor in codec.items()
                   if name.startswith(f"{file}.")}, folder / "token2wav" / f"{file}.safetensors")


def _released_form(shape: Shape) -> dict[str, Any]:
    """``config.json`` with the keys where the release has them."""
    config = shape.config.model_dump(mode="json", by_alias=True)
    return {"architectures": ["MiniCPMO"], **config.pop("llm"), **config, "hidden_act": "silu",
            "attention_bias": False, "torch_dtype": str(shape.dtype).removeprefix("torch."), "init_vision": False}


def _write_shards(folder: Path, shape: Shape, seed: int) -> None:
    """Write the tensors of all parts into files of ``shard_bytes`` or a tensor more, and their index."""
    sizes = {PREFIX[part] + name: prod(size) * shape.dtype.itemsize
             for part in PARTS for name, size in layout.tensors(part, shape.config).items()}
    shards: list[list[str]] = [[]]
    for name in sizes:
        if sum(sizes[each] for each in shards[-1]) >= shape.shard_bytes:
            shards.append([])
        shards[-1].append(name)
    made = ((PREFIX[part] + name, tensor.to(shape.dtype))
            for part in PARTS for name, tensor in tensors(part, shape, seed, torch.device("cpu")))
    files = {f"model-{i:05}-of-{len(shards):05}.safetensors": names for i, names in enumerate(shards, 1)}
    for file, names in files.items():
        save_file(dict(islice(made, len(names))), folder / file, metadata={"format": "pt"})
    write_json(folder / "model.safetensors.index.json", {
        "metadata": {"total_size": sum(sizes.values())},
        "weight_map": {name: file for file, names in files.items() for name in names}})


def _tiny() -> Shape:
    decoder = DecoderConfig(vocab_size=320, hidden_size=128, intermediate_size=256, num_hidden_layers=3,
                            num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=8192)
    audio = AudioConfig(d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=256)
    tts = TtsConfig(llm_dim=128, num_text_tokens=324, num_audio_tokens=TINY.flow.vocab_size + 1,
                    audio_bos_token_id=270, hidden_size=96, intermediate_size=192, num_hidden_layers=2,
                    num_attention_heads=3, num_key_value_heads=3)
    ids = {field: 256 + i for i, field in enumerate(NAMES)}
    tokens = SpecialTokens(**ids, forbidden=(ids["tts_pad"], 300, 301, 302))
    return Shape(_config(decoder, audio, tts), TINY, tokens, torch.float32, 2 << 20)


def _released() -> Shape:
    decoder = DecoderConfig(vocab_size=151_748, hidden_size=4096, intermediate_size=12_288, num_hidden_layers=36,
                            num_attention_heads=32, num_key_value_heads=8, head_dim=128,
                            max_position_embeddings=40_960)
    audio = AudioConfig(d_model=1024, encoder_layers=24, encoder_attention_heads=16, encoder_ffn_dim=4096)
    tts = TtsConfig(llm_dim=4096, num_text_tokens=152_064, num_audio_tokens=6562, audio_bos_token_id=151_687)
    tokens = SpecialTokens(
        unit=151_683, unit_end=151_684, listen=151_705, speak=151_706, turn_eos=151_717, chunk_eos=151_718,
        im_start=151_644, im_end=151_645, chunk_tts_eos=151_721, tts_bos=151_703, tts_pad=151_722,
        audio_start=151_697, audio_end=151_699, forbidden=(151_722,))
    return Shape(_config(decoder, audio, tts), Token2wavConfig(), tokens, torch.bfloat16, 5 << 30)


def _config(decoder: DecoderConfig, audio: AudioConfig, tts: TtsConfig) -> MiniCPMOConfig:
    return MiniCPMOConfig(version=VERSION, llm=decoder, audio_config=audio, tts_config=tts)


_SHAPES: dict[Size, Shape] = {"tiny": _tiny(), "released": _released()}


def main() -> None:
    """Write a checkpoint as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m duologue.engine.models.minicpmo.random",
                                     description="Write a MiniCPM-o 4.5 checkpoint of random weights.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=sorted(_SHAPES), default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    write(arguments.folder, arguments.size, arguments.seed)


if __name__ == "__main__":
    main()
