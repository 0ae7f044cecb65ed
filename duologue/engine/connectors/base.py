"""The one interface behind which every connector lives: the edge between two stages, for one session.

A connector is ordered and bounded: at most ``capacity`` messages are on it, whether they wait at the near end
or are under way, until its consumer has filed them. A producer asks for ``room`` before it makes more. It never
waits and has no thread: whoever holds it acts on the event that changes it (a message made, a message filed).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque

from duologue.engine.messages import CodecFrames, ReplyText

Chunk = ReplyText | CodecFrames
"""What one stage gives the next."""


class Full(Exception):  # noqa: N818 - the name of the condition
    """There is no room; the message was not taken."""


class Connector(ABC):
    """One edge for one session."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._waiting: deque[Chunk] = deque()

    @property
    @abstractmethod
    def room(self) -> int:
        """Messages it takes now."""

    def put(self, message: Chunk) -> None:
        """Take one message from the producer; raises ``Full``."""
        if not self.room:
            raise Full(f"{self.capacity} messages wait on the edge")
        self._waiting.append(message)

    @abstractmethod
    def take(self) -> list[Chunk]:
        """Give what goes to the consumer now, oldest first; each message once."""

    @abstractmethod
    def taken(self, count: int) -> None:
        """Note that the consumer has filed ``count`` of the messages that were given."""

    def abort(self, epoch: int) -> int:
        """Drop what waits and is of an epoch before ``epoch``; returns how many."""
        fresh = [message for message in self._waiting if message.fence.epoch >= epoch]
        dropped = len(self._waiting) - len(fresh)
        self._waiting = deque(fresh)
        return dropped
