"""Two stages in one process: messages are handed over by reference."""

from __future__ import annotations

from duologue.engine.connectors.base import Chunk, Connector


class LocalConnector(Connector):
    """What is given is filed at once, so only what waits counts."""

    @property
    def room(self) -> int:
        """Messages it takes now."""
        return self.capacity - len(self._waiting)

    def take(self) -> list[Chunk]:
        """Give everything that waits."""
        messages = list(self._waiting)
        self._waiting.clear()
        return messages

    def taken(self, count: int) -> None:
        """Nothing is ever under way here."""
