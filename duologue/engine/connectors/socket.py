"""Two stages in two processes, by way of the hub: the consumer's end.

The producer's end is the hub's (``engine/feed.py``): it writes the session's text from its record, so that a new
talker can be given what the old one has not said. ``Conditioning`` does not travel this way: it is large, and is not
in the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from duologue.engine.connectors.base import Filed, Parcel


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
