"""The flow's estimator: a diffusion transformer (arXiv 2212.09748) that says where noise flows to, streamed.

Each block attends, convolves and feeds forward, each of them scaled and gated by the time of the flow. Attention is
within a chunk and to all that is kept of the chunks before it, at the same time of the flow. It has no positions:
the convolutions alone know what comes after what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import torch
from torch.nn.functional import conv1d, gelu, layer_norm, linear, mish, scaled_dot_product_attention, silu

from duologue.engine.models.minicpmo.token2wav.config import FlowConfig
from duologue.engine.models.minicpmo.token2wav.encoder import Tensors
from duologue.engine.models.minicpmo.token2wav.layout import ESTIMATOR_KERNEL, TIME_WIDTH

LOOK_BACK = ESTIMATOR_KERNEL - 1
"""Frames that each of a block's two convolutions looks back."""
_TIME_SCALE = 1000.0
_EPSILON = 1e-6
_HEAD_EPSILON = 1e-5


@dataclass(frozen=True, slots=True)
class _Block:
    weights: Tensors
    qkv: tuple[torch.Tensor, torch.Tensor]
    heads: int

    def __call__(self, x: torch.Tensor, scales: torch.Tensor, convs: torch.Tensor, past: torch.Tensor,
                 allowed: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """``x`` (rows, n, size), ``scales`` (9, size), ``convs`` (rows, 2 * size, 2), ``past`` keys and values.

        ``allowed`` (rows, 1, 1, n + past) is False where a key is not to be looked at.
        """
        shift, scale, gate = scales[0], scales[1], scales[2]
        y, kv = self._attend(_modulate(x, shift, scale), past, allowed)
        x = x + gate * y
        shift, scale, gate = scales[6], scales[7], scales[8]
        y, kept = self._convolve(_modulate(x, shift, scale), convs)
        x = x + gate * y
        shift, scale, gate = scales[3], scales[4], scales[5]
        y = self._linear(gelu(self._linear(_modulate(x, shift, scale), "mlp.fc1"), approximate="tanh"), "mlp.fc2")
        return x + gate * y, kept, kv

    def _attend(self, x: torch.Tensor, past: torch.Tensor,
                allowed: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        query, key, value = linear(x, *self.qkv).view(*x.shape[:-1], 3, self.heads, -1).unbind(2)
        new = torch.cat([self._head_norm(key, "attn.k_norm"), value], -1).transpose(1, 2)
        kv = torch.cat([new, past], 2)
        key, value = kv.chunk(2, -1)
        y = scaled_dot_product_attention(self._head_norm(query, "attn.q_norm").transpose(1, 2), key, value, allowed)
        return self._linear(y.transpose(1, 2).flatten(2), "attn.proj"), kv

    def _convolve(self, x: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        size = x.shape[-1]
        first = torch.cat([past[:, :size], x.transpose(1, 2)], 2)
        y = self._conv(first, "conv.block.1").transpose(1, 2)
        y = mish(layer_norm(y, (size,), self.weights["conv.block.3.weight"], self.weights["conv.block.3.bias"],
                            _HEAD_EPSILON))
        second = torch.cat([past[:, size:], y.transpose(1, 2)], 2)
        kept = torch.cat([first[..., -LOOK_BACK:], second[..., -LOOK_BACK:]], 1)
        return self._conv(second, "conv.block.6").transpose(1, 2), kept

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _conv(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return conv1d(x, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _head_norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return layer_norm(x, x.shape[-1:], self.weights[f"{name}.weight"], self.weights[f"{name}.bias"],
                          _HEAD_EPSILON)


class Estimator:
    """The network, for the given times of the flow (0 is noise, 1 is sound)."""

    def __init__(self, config: FlowConfig, tensors: Tensors, times: Sequence[float]) -> None:
        """``tensors`` are the flow's (``layout.flow_tensors``), of one type and on one device."""
        at = "decoder.estimator."
        self._weights = {name.removeprefix(at): tensor for name, tensor in tensors.items() if name.startswith(at)}
        self._bands = config.output_size
        self._blocks = []
        for i in range(config.estimator.depth):
            at = f"blocks.{i}."
            weights = {name.removeprefix(at): tensor for name, tensor in self._weights.items() if name.startswith(at)}
            qkv = tuple(torch.cat([weights.pop(f"attn.to_{name}.{kind}") for name in "qkv"])
                        for kind in ("weight", "bias"))
            self._blocks.append(_Block(weights, (qkv[0], qkv[1]), config.estimator.num_heads))
        self._scales, self._last_scales = self._modulations(times)

    def _modulations(self, times: Sequence[float]) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales (times, blocks, 9, size) and (times, 2, size): all that the time of the flow changes."""
        like = self._weights["in_proj.weight"]
        rates = torch.exp(torch.arange(TIME_WIDTH // 2, device=like.device) * (-2 * log(1e4) / TIME_WIDTH)).to(like)
        angles = (torch.tensor(times, dtype=like.dtype, device=like.device) * _TIME_SCALE)[:, None] * rates
        time = self._linear(torch.cat([angles.cos(), angles.sin()], 1), "t_embedder.mlp.0")
        time = silu(self._linear(silu(time), "t_embedder.mlp.2"))
        blocks = [linear(time, block.weights["adaLN_modulation.1.weight"], block.weights["adaLN_modulation.1.bias"])
                  for block in self._blocks]
        last = self._linear(time, "final_layer.adaLN_modulation.1")
        return torch.stack(blocks, 1).view(len(times), len(blocks), 9, -1), last.view(len(times), 2, -1)

    def given(self, mu: torch.Tensor, speaker: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor:
        """What does not change with the flow, (batch, n, size), of ``mu`` and ``prompt`` (batch, n, bands).

        ``speaker`` is (batch, bands).
        """
        x = torch.cat([mu, speaker[:, None].expand_as(mu), prompt], -1)
        return linear(x, self._weights["in_proj.weight"][:, self._bands:])

    def __call__(self, step: int, x: torch.Tensor, given: torch.Tensor, convs: torch.Tensor, past: torch.Tensor,
                 allowed: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        """Velocity (2 * batch, n, bands) of ``x`` (batch, n, bands) at time ``step``: with ``given``, then without.

        ``convs`` (blocks, 2 * batch, 2 * size, 2) and ``past`` (blocks, 2 * batch, heads, frames, 2 * head size) are
        what was kept; returned are those with the new frames, whose keys and values come first.
        """
        x = self._linear_x(x)
        x = torch.cat([x + given, x])
        kept, keys = [], []
        for block, scales, conv, kv in zip(self._blocks, self._scales[step], convs, past, strict=True):
            x, new_conv, new_kv = block(x, scales, conv, kv, allowed)
            kept.append(new_conv)
            keys.append(new_kv)
        shift, scale = self._last_scales[step]
        return self._linear(_modulate(x, shift, scale), "final_layer.linear"), torch.stack(kept), keys

    def _linear_x(self, x: torch.Tensor) -> torch.Tensor:
        return linear(x, self._weights["in_proj.weight"][:, :self._bands], self._weights["in_proj.bias"])

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])


def _modulate(x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return layer_norm(x, x.shape[-1:], eps=_EPSILON) * (1 + scale) + shift
