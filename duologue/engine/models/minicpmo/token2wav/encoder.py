"""The flow's encoder: codes to mel positions, two for each code, streamed.

A conformer without its convolutions (arXiv 2005.08100): embedding, a convolution that looks ahead, attention layers
at 25 positions a second, nearest-neighbour upsampling and a convolution, attention layers at 50 positions a second.
Attention is within a chunk and to all that is kept of the chunks before it, with positions relative to the query
(arXiv 1901.02860, appendix B); what has been left out in between is as if it had never been.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import torch
from torch.nn.functional import (
    conv1d,
    embedding,
    layer_norm,
    leaky_relu,
    linear,
    pad,
    scaled_dot_product_attention,
    silu,
)

from duologue.engine.models.minicpmo.token2wav.config import FlowConfig

Tensors = Mapping[str, torch.Tensor]

_LOOK_BACK = 2
"""Positions the convolution behind the look-ahead looks back (its kernel is 3)."""
_EPSILON = 1e-5
_LAYER_EPSILON = 1e-12
"""Of the norms inside the layers (released conformer)."""


class EncoderState(NamedTuple):
    """What is kept of the codes so far, for a batch of streams."""

    look: torch.Tensor
    """(batch, size, 2): before the convolution behind the look-ahead."""
    up: torch.Tensor
    """(batch, size, 4): before the convolution behind the upsampling."""
    codes: torch.Tensor
    """(layers, batch, heads, positions, 2 * head size): keys and values, oldest first."""
    frames: torch.Tensor
    """The same of the layers after the upsampling, with twice the positions."""


@dataclass(frozen=True, slots=True)
class _Layer:
    weights: Tensors
    heads: int

    def __call__(self, x: torch.Tensor, past: torch.Tensor, distances: torch.Tensor,
                 padding: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        """``x`` (batch, n, size); ``distances`` (past + 2 n - 1, size) from the furthest back to the furthest ahead.

        ``padding`` (batch, 1, 1, past + n) is -inf where a key is not to be looked at. Returns x and the keys and
        values with the new ones.
        """
        weights = self.weights
        size = x.shape[-1]
        y = layer_norm(x, (size,), weights["norm_mha.weight"], weights["norm_mha.bias"], _LAYER_EPSILON)
        query = self._split(self._linear(y, "self_attn.linear_q"))
        new = torch.cat([self._split(self._linear(y, f"self_attn.linear_{kind}")) for kind in "kv"], -1)
        kv = torch.cat([past, new], 2)
        key, value = kv.chunk(2, -1)
        by_place = self._split(linear(distances, weights["self_attn.linear_pos.weight"])[None])
        places = _shift((query + weights["self_attn.pos_bias_v"][:, None]) @ by_place.transpose(-1, -2),
                        key.shape[2]) / sqrt(query.shape[-1])
        if padding is not None:
            places = places + padding
        y = scaled_dot_product_attention(query + weights["self_attn.pos_bias_u"][:, None], key, value, places)
        x = x + self._linear(y.transpose(1, 2).flatten(2), "self_attn.linear_out")
        y = layer_norm(x, (size,), weights["norm_ff.weight"], weights["norm_ff.bias"], _LAYER_EPSILON)
        return x + self._linear(silu(self._linear(y, "feed_forward.w_1")), "feed_forward.w_2"), kv

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Encoder:
    """The network. ``tensors`` are the flow's (``layout.flow_tensors``), of one type and on one device."""

    def __init__(self, config: FlowConfig, tensors: Tensors) -> None:
        self._config = config.encoder
        self._tensors = tensors
        self._layers = self._group("encoders", config.encoder.num_blocks)
        self._up_layers = self._group("up_encoders", config.encoder.num_up_blocks)

    def _group(self, name: str, count: int) -> list[_Layer]:
        layers = []
        for i in range(count):
            at = f"encoder.{name}.{i}."
            layers.append(_Layer({key.removeprefix(at): tensor for key, tensor in self._tensors.items()
                                  if key.startswith(at)}, self._config.attention_heads))
        return layers

    def begin(self) -> EncoderState:
        """The state of one stream before its first code."""
        config, like = self._config, self._tensors["encoder_proj.weight"]
        head = config.output_size // config.attention_heads
        return EncoderState(like.new_zeros(1, config.output_size, _LOOK_BACK),
                            like.new_zeros(1, config.output_size, 2 * config.up_stride),
                            like.new_zeros(config.num_blocks, 1, config.attention_heads, 0, 2 * head),
                            like.new_zeros(config.num_up_blocks, 1, config.attention_heads, 0, 2 * head))

    def __call__(self, codes: torch.Tensor, state: EncoderState, *, last: bool,
                 lengths: torch.Tensor | None = None) -> tuple[torch.Tensor, EncoderState]:
        """Mel positions (batch, 2 * decoded, bands) of ``codes`` (batch, n), int64, and the state after them.

        The last ``pre_lookahead_len`` codes are only looked at, unless they are the ``last`` of the stream: then
        ``decoded`` is n. Where ``lengths`` (batch) is given, only so many codes of each row count, the rest is
        padding, and so is what is made of it.
        """
        config = self._config
        x = self._embed(embedding(codes, self._tensors["input_embedding.weight"]), "encoder.embed")
        if lengths is not None:
            x = x * (torch.arange(x.shape[1], device=x.device) < lengths[:, None])[..., None]
        if last:
            x = pad(x, (0, 0, 0, config.pre_lookahead_len))
        ahead = leaky_relu(self._convolve(x.transpose(1, 2), "encoder.pre_lookahead_layer.conv1"))
        ahead = torch.cat([state.look, ahead], 2)
        x = (self._convolve(ahead, "encoder.pre_lookahead_layer.conv2").transpose(1, 2)
             + x[:, :-config.pre_lookahead_len])
        x, code_kv = self._attend(self._layers, x, state.codes, lengths)
        up = torch.cat([state.up, x.transpose(1, 2).repeat_interleave(config.up_stride, 2)], 2)
        x = self._embed(self._convolve(up, "encoder.up_layer.conv").transpose(1, 2), "encoder.up_embed")
        x, frame_kv = self._attend(self._up_layers, x, state.frames,
                                   None if lengths is None else config.up_stride * lengths)
        x = self._norm(x, "encoder.after_norm")
        return self._linear(x, "encoder_proj"), EncoderState(ahead[..., -_LOOK_BACK:],
                                                             up[..., -2 * config.up_stride:], code_kv, frame_kv)

    def _embed(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return self._norm(self._linear(x, f"{name}.out.0"), f"{name}.out.1") * sqrt(self._config.output_size)

    def _attend(self, layers: list[_Layer], x: torch.Tensor, past: torch.Tensor,
                lengths: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        n, before = x.shape[1], past.shape[3]
        distances = _sinusoids(torch.arange(before + n - 1, -n, -1, device=x.device), x.shape[-1]).to(x)
        padding = None
        if lengths is not None:
            outside = torch.arange(-before, n, device=x.device) >= lengths[:, None]
            padding = x.new_zeros(outside.shape).masked_fill_(outside, float("-inf"))[:, None, None]
        kept = []
        for layer, kv in zip(layers, past, strict=True):
            x, new = layer(x, kv, distances, padding)
            kept.append(new)
        return x, torch.stack(kept) if kept else past

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _convolve(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return conv1d(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return layer_norm(x, x.shape[-1:], self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"], _EPSILON)


def _sinusoids(distances: torch.Tensor, size: int) -> torch.Tensor:
    """Sine and cosine, taking turns, of each distance at ``size / 2`` rates (arXiv 1706.03762)."""
    rates = torch.exp(torch.arange(0, size, 2, dtype=torch.float32, device=distances.device) * (-log(1e4) / size))
    angles = distances.float()[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


def _shift(scores: torch.Tensor, keys: int) -> torch.Tensor:
    """Scores (..., queries, keys), of scores (..., queries, keys + queries - 1) by falling distance."""
    scores = scores.contiguous()
    queries, distances = scores.shape[-2:]
    return scores.as_strided((*scores.shape[:-1], keys), (*scores.stride()[:-2], distances - 1, 1),
                             scores.storage_offset() + queries - 1)
