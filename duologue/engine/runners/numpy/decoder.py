"""A decoder as Qwen3 (arXiv 2505.09388) and Llama (arXiv 2302.13971) have it, in float32 numpy.

The same arithmetic as ``runners.torch.decoder``. What costs is reading the weights, and, in a model this small, each
numpy call: norms are folded into the matrices behind them, and what can be one product is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.duplex.layout import decoder_tensors
from duologue.engine.runners.numpy.kv import Floats

_FEW = 8
"""Up to so many rows go through a matrix one by one. OpenBLAS packs a matrix anew for each product of matrices, which
for few rows takes longer than to read it for each row: of a 256 x 6 layer model, 8 rows take the same both ways."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Successive positions of one session: ``rows`` of a batch, the last of its ``cache`` (``KvArrays.cache``)."""

    rows: slice
    cache: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """Matrices are (out, in), as stored: OpenBLAS reads them so as fast as the other way round."""

    qkv: Floats
    qk_norm: Floats | None
    """(heads + kv heads, head_dim)."""
    o: Floats
    gate_up: Floats
    down: Floats


class Decoder:
    """Its weights, and what it computes.

    ``tensors`` come by the names of ``Qwen3ForCausalLM`` or ``LlamaForCausalLM``, float32; others are passed over.

    Raises ``ConfigError`` when one is missing or has another shape.
    """

    def __init__(self, config: DecoderConfig, tensors: Mapping[str, Floats], max_length: int) -> None:
        self.config = config
        shapes = decoder_tensors(config)

        def take(name: str) -> Floats:
            full = f"{name}.weight"
            tensor = tensors.get(full)
            if tensor is None:
                raise ConfigError(f"the decoder lacks tensor {full}")
            if tensor.shape != shapes[full]:
                raise ConfigError(f"tensor {full} is {list(tensor.shape)}, its config says {list(shapes[full])}")
            return np.ascontiguousarray(tensor)

        self._embedding = take("model.embed_tokens")
        self._layers = []
        scale = np.float32(config.head_dim ** -0.5)
        heads, shared = config.num_attention_heads, config.num_key_value_heads
        for i in range(config.num_hidden_layers):
            at = f"model.layers.{i}"
            attention = f"{at}.self_attn"
            query = take(f"{attention}.q_proj")
            norms = None
            if config.query_key_norms:
                norms = np.repeat([take(f"{attention}.q_norm") * scale, take(f"{attention}.k_norm")],
                                  [heads, shared], axis=0)
            else:
                query = query * scale
            self._layers.append(_Layer(
                np.concatenate([query, take(f"{attention}.k_proj"), take(f"{attention}.v_proj")])
                * take(f"{at}.input_layernorm"),
                norms, take(f"{attention}.o_proj"),
                np.concatenate([take(f"{at}.mlp.gate_proj"), take(f"{at}.mlp.up_proj")])
                * take(f"{at}.post_attention_layernorm"),
                take(f"{at}.mlp.down_proj")))
        self._norm = take("model.norm")
        self._head = self._embedding if config.tie_word_embeddings else take("lm_head")
        self._cos, self._sin = _rotations(config, max_length)

    def embed(self, ids: Sequence[int]) -> Floats:
        """Token ids (rows,) to input rows (rows, hidden_size), a copy."""
        rows: Floats = self._embedding[np.asarray(ids)]
        return rows

    def forward(self, rows: Floats, positions: Sequence[int], spans: Sequence[Span]) -> Floats:
        """Input rows, which are changed, at their ``positions`` (rows,) to hidden states after the last norm.

        Both (rows, hidden_size). ``spans`` are all rows in order; their keys and values are filed in their caches.
        """
        config, count = self.config, len(rows)
        turned = config.num_attention_heads + config.num_key_value_heads
        eps, ffn = np.float32(config.rms_norm_eps), config.intermediate_size
        at = np.asarray(positions)
        cos, sin = self._cos[at], self._sin[at]
        masks = [_mask(span) for span in spans]
        with np.errstate(over="ignore", invalid="ignore"):
            for i, layer in enumerate(self._layers):
                qkv = _product(_normed(rows, eps), layer.qkv.T).reshape(count, -1, config.head_dim)
                qk = qkv[:, :turned]
                if layer.qk_norm is not None:
                    qk = _normed(qk, eps) * layer.qk_norm
                qk = _rotated(qk, cos, sin)
                seen = [self._attend(span.cache[i], mask, qk[span.rows], qkv[span.rows, turned:])
                        for span, mask in zip(spans, masks, strict=True)]
                rows += _product(seen[0] if len(seen) == 1 else np.concatenate(seen), layer.o.T)
                gate_up = _product(_normed(rows, eps), layer.gate_up.T)
                gate, up = gate_up[:, :ffn], gate_up[:, ffn:]
                rows += _product(gate / (1 + np.exp(-gate)) * up, layer.down.T)
            hidden: Floats = _normed(rows, eps) * self._norm
        return hidden

    def logits(self, hidden: Floats) -> Floats:
        """Hidden states (rows, hidden_size) to logits (rows, vocabulary)."""
        return _product(hidden, self._head.T)

    def _attend(self, cache: Floats, mask: Floats | None, turned: Floats, values: Floats) -> Floats:
        """File a span's keys and ``values`` (rows, kv heads, head_dim) in a layer's cache, and attend.

        ``turned`` are its queries and keys. Returns (rows, heads * head_dim). Query heads that share a key head are
        rows of one product.
        """
        heads, width = self.config.num_attention_heads, self.config.head_dim
        count, shared = values.shape[:2]
        cache[0, :, -count:] = turned[:, heads:].transpose(1, 0, 2)
        cache[1, :, -count:] = values.transpose(1, 0, 2)
        query = turned[:, :heads].reshape(count, shared, -1, width).transpose(1, 2, 0, 3).reshape(shared, -1, width)
        scores = _product(query, cache[0].transpose(0, 2, 1))
        if mask is not None:
            scores.reshape(shared, -1, count, scores.shape[-1])[...] += mask
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        out = _product(scores, cache[1])
        out /= scores.sum(axis=-1, keepdims=True)
        seen: Floats = out.reshape(shared, -1, count, width).transpose(2, 0, 1, 3).reshape(count, -1)
        return seen


def _product(rows: Floats, matrix: Floats) -> Floats:
    """(..., n, in) times (..., in, out) to (..., n, out)."""
    if 1 < rows.shape[-2] <= _FEW:
        out: Floats = (rows[..., None, :] @ matrix[..., None, :, :])[..., 0, :]
        return out
    return rows @ matrix


def _normed(x: Floats, eps: np.float32) -> Floats:
    """RMS norm (arXiv 1910.07467) over the last axis, without its weight."""
    normed: Floats = x / np.sqrt(np.vecdot(x, x) * np.float32(1 / x.shape[-1]) + eps)[..., None]
    return normed


def _mask(span: Span) -> Floats | None:
    """What is added to scores (rows, positions) so that no row sees a later one; None for a single row."""
    count, length = span.rows.stop - span.rows.start, span.cache.shape[3]
    return None if count == 1 else np.triu(np.full((count, length), -np.inf, np.float32), length - count + 1)


def _rotations(config: DecoderConfig, length: int) -> tuple[Floats, Floats]:
    """Give cosine and sine of every position's angles (arXiv 2104.09864), each (length, 1, 2, head_dim / 2).

    The sine has the sign with which it takes the other half. In float32, as the released models were trained.
    """
    half = config.head_dim // 2
    exponents = np.arange(half, dtype=np.float32) * np.float32(2 / config.head_dim)
    angles = np.outer(np.arange(length, dtype=np.float32), np.float32(config.rope_theta) ** -exponents)
    sin = np.sin(angles)
    return np.stack([np.cos(angles)] * 2, axis=1)[:, None], np.stack([-sin, sin], axis=1)[:, None]


def _rotated(x: Floats, cos: Floats, sin: Floats) -> Floats:
    """Rotate (rows, heads, head_dim): feature i goes with feature i + head_dim / 2, as in the released weights."""
    halves = x.reshape(*x.shape[:2], 2, -1)
    turned: Floats = halves * cos + halves[:, :, ::-1] * sin
    return turned.reshape(x.shape)
