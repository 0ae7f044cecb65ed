"""Two stages in one process: messages are handed over by reference, when their worker turns to them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from duologue.engine.connectors.base import Filed, Parcel


class LocalConnector:
    """Both ends of the edge."""

    def __init__(self) -> None:
        self._parcels: deque[Parcel] = deque()
        self._filed: list[Filed] = []

    def send(self, parcel: Parcel) -> bool:
        """Take ``parcel``; always."""
        self._parcels.append(parcel)
        return True

    def receive(self) -> list[Parcel]:
        """What has come since the last call."""
        parcels = list(self._parcels)
        self._parcels.clear()
        return parcels

    def file(self, filed: Iterable[Filed]) -> None:
        """Let the producer know what was filed."""
        self._filed.extend(filed)

    def filed(self) -> list[Filed]:
        """What the consumer has filed since the last call."""
        filed, self._filed = self._filed, []
        return filed

    def flush(self) -> None:
        """Do nothing: whoever sends turns to the other end next."""

    def fileno(self) -> None:
        """There is nothing to wait for."""

    def clear(self) -> None:
        """Do nothing."""
