"""A decoder as Qwen3 (arXiv 2505.09388) and Llama (arXiv 2302.13971) have it: RMSNorm, RoPE, grouped queries, SwiGLU.

Qwen3 has norms on query and key too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch.nn.functional import linear, rms_norm, silu

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig

Attend = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""(layer, query, key, value), each (rows, heads, head_dim), to (rows, heads, head_dim)."""


@dataclass(frozen=True, slots=True)
class _Layer:
    input_norm: torch.Tensor
    qkv: torch.Tensor
    q_norm: torch.Tensor | None
    k_norm: torch.Tensor | None
    o: torch.Tensor
    mlp_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor


class Decoder:
    """Its weights, and what it computes.

    ``tensors`` come by the names of ``Qwen3ForCausalLM`` or ``LlamaForCausalLM``; others are passed over.

    Raises ``ConfigError`` when one is missing.
    """

    def __init__(self, config: DecoderConfig, tensors: Iterable[tuple[str, torch.Tensor]], max_length: int,
                 device: torch.device, dtype: torch.dtype) -> None:
        self.config = config
        found = {name: tensor.to(device, dtype) for name, tensor in tensors
                 if name.startswith(("model.", "lm_head."))}

        def take(*names: str) -> torch.Tensor:
            try:
                parts = [found.pop(f"{name}.weight") for name in names]
            except KeyError as error:
                raise ConfigError(f"the decoder lacks tensor {error.args[0]}") from None
            return parts[0] if len(parts) == 1 else torch.cat(parts)

        self._embedding = take("model.embed_tokens")
        self._layers = []
        for i in range(config.num_hidden_layers):
            at = f"model.layers.{i}"
            attention = f"{at}.self_attn"
            self._layers.append(_Layer(
                take(f"{at}.input_layernorm"),
                take(f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
                take(f"{attention}.q_norm") if config.query_key_norms else None,
                take(f"{attention}.k_norm") if config.query_key_norms else None,
                take(f"{attention}.o_proj"),
                take(f"{at}.post_attention_layernorm"),
                take(f"{at}.mlp.gate_proj", f"{at}.mlp.up_proj"), take(f"{at}.mlp.down_proj")))
        self._norm = take("model.norm")
        self._head = self._embedding if config.tie_word_embeddings else take("lm_head")
        self._cos, self._sin = _rotations(config, max_length, device, dtype)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Token ids (rows,) to input rows (rows, hidden_size)."""
        return self._embedding[ids]

    def forward(self, rows: torch.Tensor, positions: torch.Tensor, attend: Attend) -> torch.Tensor:
        """Input rows at their ``positions`` (rows,) to hidden states after the last norm (rows, hidden_size)."""
        config, eps = self.config, self.config.rms_norm_eps
        width, heads, shared = config.head_dim, config.num_attention_heads, config.num_key_value_heads
        cos, sin = self._cos[positions].unsqueeze(1), self._sin[positions].unsqueeze(1)
        for i, layer in enumerate(self._layers):
            normed = rms_norm(rows, (config.hidden_size,), layer.input_norm, eps)
            query, key, value = linear(normed, layer.qkv).view(len(rows), -1, width).tensor_split(
                (heads, heads + shared), dim=1)
            if layer.q_norm is not None and layer.k_norm is not None:
                query = rms_norm(query, (width,), layer.q_norm, eps)
                key = rms_norm(key, (width,), layer.k_norm, eps)
            query, key = _rotate(query, cos, sin), _rotate(key, cos, sin)
            rows = rows + linear(attend(i, query, key, value).flatten(1), layer.o)
            gate, up = linear(rms_norm(rows, (config.hidden_size,), layer.mlp_norm, eps), layer.gate_up).chunk(2, -1)
            rows = rows + linear(silu(gate) * up, layer.down)
        return rms_norm(rows, (config.hidden_size,), self._norm, eps)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden states (rows, hidden_size) to logits (rows, vocabulary)."""
        return linear(hidden, self._head)


def _rotations(config: DecoderConfig, length: int, device: torch.device, dtype: torch.dtype) \
        -> tuple[torch.Tensor, torch.Tensor]:
    """Give cosine and sine of every position's angles (arXiv 2104.09864), each (length, head_dim)."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device) / config.head_dim
    angles = torch.outer(torch.arange(length, dtype=torch.float32, device=device), config.rope_theta ** -exponents)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate (rows, heads, head_dim): feature i goes with feature i + head_dim / 2, as in the released weights."""
    low, high = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-high, low), dim=-1) * sin
