"""The KV of all sessions: one pool of blocks, and which blocks and how many positions each session holds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch

SCRATCH = 0
"""A block of nobody's: rows that pad a batch write there."""


@dataclass(slots=True)
class _Held:
    blocks: list[int] = field(default_factory=list)
    length: int = 0


class KvPool:
    """Blocks of ``block`` positions, ``positions // block`` of them; keys and values of every layer."""

    def __init__(self, layers: int, heads: int, head_dim: int, positions: int, block: int, device: torch.device,
                 dtype: torch.dtype) -> None:
        self.block = block
        count = positions // block
        self.keys = torch.zeros((layers, count + 1, block, heads, head_dim), device=device, dtype=dtype)
        self.values = torch.zeros_like(self.keys)
        self._free = list(range(count, SCRATCH, -1))
        self._held: dict[str, _Held] = {}

    @property
    def sessions(self) -> Collection[str]:
        """Who holds anything."""
        return self._held.keys()

    @property
    def free(self) -> int:
        """Positions in blocks that nobody holds."""
        return len(self._free) * self.block

    def length(self, session: str) -> int:
        """Count the session's positions."""
        held = self._held.get(session)
        return 0 if held is None else held.length

    def grow(self, session: str, count: int) -> range | None:
        """Add ``count`` positions and give them; None, and nothing is changed, when there are no blocks for them."""
        held = self._held.get(session) or _Held()
        lacking = -(-(held.length + count) // self.block) - len(held.blocks)
        if lacking > len(self._free):
            return None
        held.blocks += [self._free.pop() for _ in range(lacking)]
        held.length += count
        self._held[session] = held
        return range(held.length - count, held.length)

    def truncate(self, session: str, length: int) -> None:
        """Keep the session's first ``length`` positions and give back the blocks of the rest."""
        held = self._held.get(session)
        if held is None:
            return
        held.length = min(held.length, length)
        whole = -(-held.length // self.block)
        self._free += reversed(held.blocks[whole:])
        del held.blocks[whole:]
        if not held.blocks:
            del self._held[session]

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

    def slots(self, session: str, positions: range) -> list[int]:
        """Say where the session's ``positions`` lie, counted in positions from the pool's start."""
        blocks = self._held[session].blocks
        return [blocks[p // self.block] * self.block + p % self.block for p in positions]
