"""A small ear with random weights, and audio for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from duologue.engine.models.minicpmo.config import MiniCPMOConfig
from duologue.engine.models.minicpmo.hearing.ear import Ear
from duologue.engine.models.minicpmo.layout import tensors

HIDDEN = 24

# Tensors this small only lose by being cut up between threads.
torch.set_num_threads(1)


def config(positions: int = 1500, **more: Any) -> MiniCPMOConfig:
    decoder = {"vocab_size": 8, "hidden_size": HIDDEN, "intermediate_size": 8, "num_hidden_layers": 1,
               "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 8}
    audio = {"d_model": 16, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64,
             "max_source_positions": positions}
    audio |= {key: more.pop(key) for key in list(more) if key in audio or key == "num_mel_bins"}
    speech = {"llm_dim": HIDDEN, "num_text_tokens": 8, "num_audio_tokens": 8, "audio_bos_token_id": 0}
    return MiniCPMOConfig.model_validate({**decoder, "model_type": "minicpmo", "version": "4.5", "audio_config": audio,
                                          "tts_config": speech, **more})


def weights(of: MiniCPMOConfig) -> Iterator[tuple[str, torch.Tensor]]:
    made = torch.Generator().manual_seed(3)
    for name, shape in tensors("hearing", of).items():
        wide = 0.3 / shape[-1] ** 0.5 if len(shape) == 3 else 1.5 / shape[-1] ** 0.5 if len(shape) == 2 else 0.3
        yield name, torch.randn(shape, generator=made) * wide + (name.endswith("norm.weight"))


def ear(positions: int = 1500, dtype: torch.dtype = torch.float32) -> Ear:
    of = config(positions)
    return Ear(of, weights(of), torch.device("cpu"), dtype)


def units(count: int, seed: int = 0) -> list[NDArray[np.int16]]:
    """Noise and a tone, louder and quieter from unit to unit, some of it silent."""
    made = np.random.default_rng(seed)
    gains = made.choice([0, 30, 300, 3000], count)
    tone = np.sin(2 * np.pi * 440 * np.arange(16_000) / 16_000)
    return [(gain * (made.normal(size=16_000) + tone)).astype(np.int16) for gain in gains]
