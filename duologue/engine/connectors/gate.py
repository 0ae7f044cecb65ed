"""The gate in front of a stage where stages do not overlap (``async_chunk: false``)."""

from __future__ import annotations

from duologue.engine.connectors.base import Chunk


class Gate:
    """Keeps a session's chunks until their reply is whole. They are off their edge, so that it never fills up."""

    def __init__(self) -> None:
        self._chunks: list[Chunk] = []

    def admit(self, chunk: Chunk) -> list[Chunk]:
        """Take a chunk; returns the whole reply with its last one.

        A reply that another one follows before it was whole was given up by its producer.
        """
        if self._chunks and self._chunks[0].fence.turn != chunk.fence.turn:
            self._chunks.clear()
        self._chunks.append(chunk)
        if not chunk.last:
            return []
        whole, self._chunks = self._chunks, []
        return whole

    def raise_epoch(self, epoch: int) -> int:
        """Drop what is of an epoch before ``epoch``; returns how many chunks."""
        kept = [chunk for chunk in self._chunks if chunk.fence.epoch >= epoch]
        dropped = len(self._chunks) - len(kept)
        self._chunks = kept
        return dropped
