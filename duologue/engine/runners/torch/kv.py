"""The KV of all sessions: one pool of blocks, and which blocks and how many positions each session holds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import torch

SCRATCH = 0
"""A block of nobody's: rows that pad a batch write there."""


@dataclass(slots=True)
class _Held:
    blocks: list[int] = field(default_factory=list)
    length: int = 0
    whole: bool = True
    """Whether the blocks lie side by side, in order."""


class KvPool:
    """Blocks of ``block`` positions, ``positions // block`` of them; keys and values of every layer.

    A session's blocks are laid side by side as long as there is room: on a CPU, attention then reads them where they
    lie, and else copies them first, which takes longer than the attention.
    """

    def __init__(self, layers: int, heads: int, head_dim: int, positions: int, block: int, device: torch.device,
                 dtype: torch.dtype) -> None:
        self.block = block
        count = positions // block
        self.keys = torch.zeros((layers, count + 1, block, heads, head_dim), device=device, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        self._free = np.ones(count + 1, dtype=np.bool_)
        self._free[SCRATCH] = False
        self._held: dict[str, _Held] = {}

    @property
    def sessions(self) -> Collection[str]:
        """Who holds anything."""
        return self._held.keys()

    @property
    def free(self) -> int:
        """Positions in blocks that nobody holds."""
        return int(self._free.sum()) * self.block

    def length(self, session: str) -> int:
        """Count the session's positions."""
        held = self._held.get(session)
        return 0 if held is None else held.length

    def grow(self, session: str, count: int) -> range | None:
        """Add ``count`` positions and give them; None, and nothing is changed, when there are no blocks for them."""
        held = self._held.get(session) or _Held()
        lacking = -(-(held.length + count) // self.block) - len(held.blocks)
        if lacking > 0 and lacking * self.block > self.free:
            return None
        for still in range(lacking, 0, -1):
            self._add_block(held, still)
        held.length += count
        self._held[session] = held
        return range(held.length - count, held.length)

    def truncate(self, session: str, length: int) -> None:
        """Keep the session's first ``length`` positions and give back the blocks of the rest."""
        held = self._held.get(session)
        if held is None:
            return
        held.length = min(held.length, length)
        needed = -(-held.length // self.block)
        self._free[held.blocks[needed:]] = True
        del held.blocks[needed:]
        if not held.blocks:
            del self._held[session]
        elif not held.whole:
            held.whole = held.blocks == list(range(held.blocks[0], held.blocks[0] + needed))

    def drop(self, session: str) -> None:
        """Give back all."""
        self.truncate(session, 0)

    def scrub(self, session: str) -> None:
        """Drop a session whose numbers are not finite: a masked position weighs 0, and 0 times NaN is NaN."""
        held = self._held.get(session)
        if held is not None:
            self.keys[:, held.blocks] = 0
            self.values[:, held.blocks] = 0
        self.drop(session)

    def blocks(self, session: str) -> list[int]:
        """Give the session's blocks in order; not to be changed."""
        return self._held[session].blocks

    def where(self, session: str) -> slice | torch.Tensor:
        """Give the session's blocks as an index into a layer's pool; a slice takes no copy."""
        held = self._held[session]
        if held.whole:
            return slice(held.blocks[0], held.blocks[-1] + 1)
        return torch.tensor(held.blocks, device=self.keys.device)

    def slots(self, session: str, positions: range) -> list[int]:
        """Say where the session's ``positions`` lie, counted in positions from the pool's start."""
        blocks = self._held[session].blocks
        return [blocks[p // self.block] * self.block + p % self.block for p in positions]

    def _add_block(self, held: _Held, lacking: int) -> None:
        """Add the next of ``lacking`` blocks: beside the last one, else amid the widest gap, to leave both room."""
        after = held.blocks[-1] + 1 if held.blocks else len(self._free)
        if after < len(self._free) and self._free[after]:
            block = after
        else:
            edges = np.flatnonzero(np.diff(self._free, prepend=False, append=False))
            starts, widths = edges[::2], edges[1::2] - edges[::2]
            widest = int(widths.argmax())
            width = int(widths[widest])
            block = int(starts[widest]) + min(width // 2, max(0, width - lacking))
            held.whole = not held.blocks
        self._free[block] = False
        held.blocks.append(block)
