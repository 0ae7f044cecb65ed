"""The KV of all sessions: an array each, which grows; blocks are only counted."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(slots=True, eq=False)
class _Held:
    cache: Floats
    """(layers, 2, heads, room, head_dim): keys, then values, of each layer."""
    length: int = 0


class KvArrays:
    """``positions // block`` blocks of ``block`` positions.

    A session's array has room for the power of two of blocks that holds it, so that growing copies each position
    about once; of that room, memory that was never written takes none.
    """

    def __init__(self, layers: int, heads: int, head_dim: int, positions: int, block: int) -> None:
        self._layers, self._heads, self._head_dim = layers, heads, head_dim
        self._blocks, self._block = positions // block, block
        self._held: dict[str, _Held] = {}

    @property
    def sessions(self) -> Collection[str]:
        """Who holds anything."""
        return self._held.keys()

    @property
    def free(self) -> int:
        """Positions in blocks that nobody holds."""
        return (self._blocks - sum(self._count(held.length) for held in self._held.values())) * self._block

    def length(self, session: str) -> int:
        """Count the session's positions."""
        held = self._held.get(session)
        return 0 if held is None else held.length

    def grow(self, session: str, count: int) -> range | None:
        """Add ``count`` positions and give them; None, and nothing is changed, when there are no blocks for them."""
        held = self._held.get(session)
        before = 0 if held is None else held.length
        length = before + count
        if (self._count(length) - self._count(before)) * self._block > self.free:
            return None
        if held is None:
            held = self._held[session] = _Held(self._empty(length))
        elif length > held.cache.shape[3]:
            wider = self._empty(length)
            wider[:, :, :, :before] = held.cache[:, :, :, :before]
            held.cache = wider
        held.length = length
        return range(before, length)

    def truncate(self, session: str, length: int) -> None:
        """Keep the session's first ``length`` positions and give back the blocks of the rest."""
        held = self._held.get(session)
        if held is None:
            return
        held.length = min(held.length, length)
        if not held.length:
            del self._held[session]

    def drop(self, session: str) -> None:
        """Give back all."""
        self.truncate(session, 0)

    def scrub(self, session: str) -> None:
        """Drop a session whose numbers are not finite: they go with its array."""
        self.drop(session)

    def cache(self, session: str) -> Floats:
        """Give the session's keys and values, (layers, 2, heads, positions, head_dim), to read and to write."""
        held = self._held[session]
        return held.cache[:, :, :, :held.length]

    def _count(self, positions: int) -> int:
        return -(-positions // self._block)

    def _empty(self, length: int) -> Floats:
        room = self._block << (self._count(length) - 1).bit_length()
        return np.empty((self._layers, 2, self._heads, room, self._head_dim), np.float32)
