"""The encoder half of a Whisper (arXiv 2212.04356): two convolutions over log-mel frames, then layers of attention.

Who attends to what is the caller's: a stream to its past and to its own unit, a clip to its blocks of one second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import conv1d, gelu, layer_norm, linear

from duologue.engine.models.minicpmo.config import AudioConfig

Attend = Callable[[int, torch.Tensor, torch.Tensor], torch.Tensor]
"""(layer, query (streams, n, heads, head_dim), keys and values (streams, n, 2, heads, head_dim)) to shape of query."""


@dataclass(frozen=True, slots=True)
class _Affine:
    weight: torch.Tensor
    bias: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Layer:
    attention_norm: _Affine
    qkv: _Affine
    out: _Affine
    norm: _Affine
    up: _Affine
    down: _Affine


class Encoder:
    """Its weights, and what it computes. ``tensors`` are those named ``apm.*``; they are taken out of it.

    Raises ``KeyError`` when one is absent.
    """

    def __init__(self, config: AudioConfig, tensors: dict[str, torch.Tensor]) -> None:
        def affine(name: str) -> _Affine:
            return _Affine(tensors.pop(f"apm.{name}.weight"), tensors.pop(f"apm.{name}.bias"))

        self.config = config
        self._conv1, self._conv2 = affine("conv1"), affine("conv2")
        self._positions = tensors.pop("apm.embed_positions.weight")
        self._layers = []
        for i in range(config.encoder_layers):
            at = f"layers.{i}"
            query, value = affine(f"{at}.self_attn.q_proj"), affine(f"{at}.self_attn.v_proj")
            key = tensors.pop(f"apm.{at}.self_attn.k_proj.weight")
            qkv = _Affine(torch.cat((query.weight, key, value.weight)),
                          torch.cat((query.bias, torch.zeros_like(query.bias), value.bias)))
            self._layers.append(_Layer(
                affine(f"{at}.self_attn_layer_norm"), qkv, affine(f"{at}.self_attn.out_proj"),
                affine(f"{at}.final_layer_norm"), affine(f"{at}.fc1"), affine(f"{at}.fc2")))
        self._norm = affine("layer_norm")

    def stem(self, mel: torch.Tensor, absent: torch.Tensor) -> torch.Tensor:
        """Log-mel frames (streams, n, 80) to rows (streams, ceil(n / 2), d_model), 20 ms each.

        Frames that are ``absent``, bool (streams, n), are like those beyond the ends: no input to either convolution.
        """
        gone = absent.unsqueeze(1)
        mel = mel.transpose(1, 2).masked_fill(gone, 0)
        rows = gelu(conv1d(mel, self._conv1.weight, self._conv1.bias, padding=1)).masked_fill(gone, 0)
        return gelu(conv1d(rows, self._conv2.weight, self._conv2.bias, stride=2, padding=1)).transpose(1, 2)

    def forward(self, rows: torch.Tensor, starts: list[int], attend: Attend) -> torch.Tensor:
        """Rows of the stem (streams, n, d_model), of each stream at the positions from its start, to hidden states."""
        count, heads = rows.shape[1], self.config.encoder_attention_heads
        rows = rows + torch.stack([self._positions[start:start + count] for start in starts])
        for i, layer in enumerate(self._layers):
            qkv = _linear(self._normed(rows, layer.attention_norm), layer.qkv)
            qkv = qkv.view(*rows.shape[:2], 3, heads, -1)
            rows = rows + _linear(attend(i, qkv[:, :, 0], qkv[:, :, 1:]).flatten(2), layer.out)
            rows = rows + _linear(gelu(_linear(self._normed(rows, layer.norm), layer.up)), layer.down)
        return self._normed(rows, self._norm)

    def _normed(self, rows: torch.Tensor, norm: _Affine) -> torch.Tensor:
        return layer_norm(rows, (self.config.d_model,), norm.weight, norm.bias)


def _linear(rows: torch.Tensor, by: _Affine) -> torch.Tensor:
    return linear(rows, by.weight, by.bias)
