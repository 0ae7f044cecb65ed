"""Two stages in two processes, by way of the hub, which stands in the middle (``engine/feed.py``).

The talker's text the hub writes itself, from its record, so that a new talker can be given what the old one has not
said; ``Conditioning`` does not travel this way: it is large, and is not in the record. Codec frames it passes on, and
says back to their producer how many need no room any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from duologue.engine.connectors.base import Filed, Parcel


class SocketSender:
    """The end of a stage that makes codec frames; ``say`` takes a parcel to the hub."""

    def __init__(self, say: Callable[[Parcel], None]) -> None:
        self._say = say
        self._filed: list[Filed] = []

    def send(self, parcel: Parcel) -> bool:
        """Take ``parcel``; always: the hub always reads."""
        self._say(parcel)
        return True

    def push(self, filed: Filed) -> None:
        """Add what the worker read."""
        self._filed.append(filed)

    def filed(self) -> list[Filed]:
        """What the hub has said since the last call."""
        filed, self._filed = self._filed, []
        return filed

    def flush(self) -> None:
        """Do nothing: the worker sends what was said after each step."""

    def fileno(self) -> None:
        """The worker waits for its socket itself."""

    def clear(self) -> None:
        """Do nothing."""


class SocketReceiver:
    """What the worker read from its socket to the hub for one stage; ``tell`` carries a ``Filed`` to the hub."""

    def __init__(self, tell: Callable[[Filed], None]) -> None:
        self._tell = tell
        self._parcels: list[Parcel] = []

    def push(self, parcel: Parcel) -> None:
        """Add what the worker read."""
        self._parcels.append(parcel)

    def receive(self) -> list[Parcel]:
        """What was read since the last call."""
        parcels, self._parcels = self._parcels, []
        return parcels

    def file(self, filed: Iterable[Filed]) -> None:
        """Let the hub know what was filed."""
        for one in filed:
            self._tell(one)

    def fileno(self) -> None:
        """The worker waits for its socket itself."""

    def clear(self) -> None:
        """Do nothing."""
