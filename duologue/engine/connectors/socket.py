"""Two stages in two processes: messages travel over the processes' sockets by way of the hub, which holds this.

The consumer's worker says when its stage has filed messages (``wire.Taken``); until then they are under way and
keep their room, so that a busy worker's socket never holds more than ``capacity`` of them for a session.
"""

from __future__ import annotations

from duologue.engine.connectors.base import Chunk, Connector


class SocketConnector(Connector):
    """A window of ``capacity`` messages from the hub to the consumer."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._under_way = 0

    @property
    def room(self) -> int:
        """Messages it takes now."""
        return self.capacity - len(self._waiting) - self._under_way

    def take(self) -> list[Chunk]:
        """Give everything that waits; it is under way until ``taken``."""
        messages = list(self._waiting)
        self._waiting.clear()
        self._under_way += len(messages)
        return messages

    def taken(self, count: int) -> None:
        """Free the room of ``count`` messages."""
        self._under_way -= min(count, self._under_way)
