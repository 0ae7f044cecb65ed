"""What every connector keeps: an edge between two stages, for all the sessions of the processes it joins.

An edge has two ends. The producer's numbers what it sends and keeps what does not fit (``outlet.py``); the consumer's
files each message once, in order, and in the life and the epoch it is of (``inlet.py``). A connector is what moves
parcels from the one to the other, and the counts of what was filed back:

* Parcels of one session come out in the order they went in.
* Nothing waits in a call. What does not fit is not taken, and ``fileno`` becomes readable when it is worth another try.
* Parcels are lost only with the process of an end, or with the connection; they may come twice. The numbers tell.
* Whoever opens an end begins with what is sent from then on: what was under way before is of lives that are over.

A connector that crosses machines is a ``Sender`` and a ``Receiver`` over a connection that keeps order (TCP, RDMA, a
Ray channel), whose descriptor is its ``fileno``. It may send again what it cannot tell to have arrived, and needs to
know nothing of lives, epochs or windows. Its ends open when the hub has placed both processes, as those of ``shm`` do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from duologue.engine.messages import CodecFrames, ReplyText

Chunk = ReplyText | CodecFrames
"""What one stage gives the next."""


class Full(Exception):  # noqa: N818 - the name of the condition
    """There is no room; the message was not taken."""


class Missing(Exception):  # noqa: N818 - the name of the condition
    """A message did not come: what follows it cannot be filed."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """A message on an edge.

    ``life`` is that of the session in both stages, from one ``Open`` to the next; ``number`` counts the session's
    parcels in that life, from 0.
    """

    session: str
    life: int
    number: int
    chunk: Chunk


@dataclass(frozen=True, slots=True)
class Filed:
    """``count`` parcels of the session's life need no room any more: they were filed, or dropped as stale.

    A total, so that one that comes twice, or in place of an earlier one, says nothing wrong.
    """

    session: str
    life: int
    count: int


class Sender(Protocol):
    """The producer's end."""

    def send(self, parcel: Parcel) -> bool:
        """Take ``parcel``; False when there is no space for it now."""

    def filed(self) -> list[Filed]:
        """What the consumer has said since the last call."""

    def flush(self) -> None:
        """Let the consumer know of what was sent."""

    def fileno(self) -> int | None:
        """A descriptor that is readable when ``filed`` or ``send`` has become worth a call; None in one process."""

    def clear(self) -> None:
        """Make it unreadable, before the calls that it asks for."""


class Receiver(Protocol):
    """The consumer's end."""

    def receive(self) -> list[Parcel]:
        """What has come since the last call; for one session, in order."""

    def file(self, filed: Iterable[Filed]) -> None:
        """Let the producer know what was filed."""

    def fileno(self) -> int | None:
        """A descriptor that is readable when ``receive`` has become worth a call; None in one process."""

    def clear(self) -> None:
        """Make it unreadable, before the calls that it asks for."""
