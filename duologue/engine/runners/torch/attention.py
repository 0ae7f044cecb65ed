"""Attention of a ragged batch over paged KV."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn.functional import scaled_dot_product_attention

from duologue.engine.runners.torch.kv import KvPool


class Span:
    """Successive positions of one session: ``rows`` of a batch, the last of ``length`` that lie ``where`` it says."""

    def __init__(self, rows: slice, where: slice | torch.Tensor, length: int, device: torch.device) -> None:
        self.rows = rows
        self._where = where
        self._length = length
        count = rows.stop - rows.start
        self._mask = None if count == 1 else torch.ones(
            (count, length), dtype=torch.bool, device=device).tril(length - count)

    def attend(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """``query`` (rows, heads, head_dim), a layer's pools (blocks, block, kv heads, head_dim) to (rows, heads, ...).

        Query heads that share a key head are heads of a batch of key heads: nothing is repeated in memory.
        """
        shared, group, width = keys.shape[2], query.shape[1] // keys.shape[2], query.shape[2]
        key, value = (pool[self._where].flatten(0, 1)[:self._length].transpose(0, 1).unsqueeze(1)
                      .expand(-1, group, -1, -1) for pool in (keys, values))
        rows = query.view(-1, shared, group, width).permute(1, 2, 0, 3)
        out = scaled_dot_product_attention(rows, key, value, attn_mask=self._mask)
        return out.permute(2, 0, 1, 3).flatten(1, 2)


@dataclass(frozen=True, slots=True)
class Padded:
    """One position each of several sessions, in tensors of a fixed shape: ``blocks`` (n, m), ``lengths`` (n,)."""

    blocks: torch.Tensor
    lengths: torch.Tensor

    def attend(self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        """Like ``Span.attend``; query heads that share a key head are positions."""
        shared, width = keys.shape[2], query.shape[2]
        key, value = (pool[self.blocks].flatten(1, 2).transpose(1, 2) for pool in (keys, values))
        mask = torch.arange(key.shape[2], device=query.device) < self.lengths.view(-1, 1, 1, 1)
        out = scaled_dot_product_attention(query.view(len(query), shared, -1, width), key, value, attn_mask=mask)
        return out.flatten(1, 2)


@dataclass(frozen=True, slots=True)
class Attention:
    """What the rows of one batch attend to: the first to ``padded``, one each, the others in ``spans``.

    ``slots`` is where each row's key and value go (``KvPool.slots``).
    """

    kv: KvPool
    slots: torch.Tensor
    spans: tuple[Span, ...] = ()
    padded: Padded | None = None

    def __call__(self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        """File ``key`` and ``value`` (rows, kv heads, head_dim), then attend; all in the layer's part of the pool."""
        keys, values = self.kv.keys[layer], self.kv.values[layer]
        keys.flatten(0, 1).index_copy_(0, self.slots, key)
        values.flatten(0, 1).index_copy_(0, self.slots, value)
        first = [] if self.padded is None else [
            self.padded.attend(query[:len(self.padded.lengths)], keys, values)]
        return torch.cat(first + [span.attend(query[span.rows], keys, values) for span in self.spans])
