"""The consumer's end of an edge: each message is filed once, in order, in the life and the epoch it is of.

The hub tells both ends of lives and epochs, and what the producer says of a new one may be here before the hub's
word is. Such a message waits; one of a life or an epoch that is over is dropped.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque

from duologue.engine.connectors.base import Chunk, Filed, Missing, Parcel, Receiver

UNOPENED = 256
"""Sessions the hub has not told of yet that may have messages waiting. Its word is under way; more than these are
left over from sessions that ended while this process was being started."""
CLOSED = 4096
"""Sessions that are over whose last life is remembered, so that what comes late is not taken for early."""


class Inlet:
    """One session. At most ``capacity`` messages of one life wait here: they keep their room on the edge."""

    def __init__(self, capacity: int, life: int = 0) -> None:
        self.life = life
        self.filed = 0
        """Messages of this life that need no room any more."""
        self.stale = 0
        """Messages that were dropped."""
        self._capacity = capacity
        self._epoch = 0
        self._next = 0
        self._of_next_epoch: deque[Chunk] = deque()
        self._of_next_life: deque[Parcel] = deque()

    def open(self, life: int, epoch: int) -> list[Chunk]:
        """Begin ``life``; returns what waited for it. Raises ``Missing``."""
        self.life, self._epoch, self._next, self.filed = life, epoch, 0, 0
        self.stale += len(self._of_next_epoch)
        self._of_next_epoch.clear()
        waited, self._of_next_life = self._of_next_life, deque()
        return [chunk for parcel in waited for chunk in self.accept(parcel)]

    def raise_epoch(self, epoch: int) -> list[Chunk]:
        """Note that older epochs are over; returns what waited for ``epoch``."""
        self._epoch = epoch
        waited, self._of_next_epoch = self._of_next_epoch, deque()
        return [chunk for one in waited for chunk in self._sort(one)]

    def accept(self, parcel: Parcel) -> list[Chunk]:
        """Take a parcel; returns the messages to file now. Raises ``Missing``."""
        if parcel.life > self.life:
            # Of two lives at most: one that began while the other's opening is under way.
            if len(self._of_next_life) < 2 * self._capacity:
                self._of_next_life.append(parcel)
            else:
                self.stale += 1
            return []
        if parcel.life < self.life or parcel.number < self._next:
            self.stale += 1
            return []
        if parcel.number > self._next:
            raise Missing(f"message {self._next} of the edge did not come, {parcel.number} did")
        self._next += 1
        return self._sort(parcel.chunk)

    @property
    def waiting(self) -> int:
        """Messages that wait for the hub's word."""
        return len(self._of_next_life) + len(self._of_next_epoch)

    def _sort(self, chunk: Chunk) -> list[Chunk]:
        if chunk.fence.epoch > self._epoch:
            self._of_next_epoch.append(chunk)
            return []
        self.filed += 1
        if chunk.fence.epoch < self._epoch:
            self.stale += 1
            return []
        return [chunk]


class Inlets:
    """All sessions of an edge."""

    def __init__(self, receiver: Receiver, capacity: int) -> None:
        self.receiver = receiver
        self.drops: Counter[str] = Counter()
        """Messages dropped, by why."""
        self._capacity = capacity
        self._inlets: dict[str, Inlet] = {}
        self._unopened: OrderedDict[str, Inlet] = OrderedDict()
        self._closed: OrderedDict[str, int] = OrderedDict()
        self._news: dict[str, None] = {}
        """Sessions of which something was filed that the producer has not been told of."""

    def open(self, session: str, life: int, epoch: int) -> list[Chunk]:
        """Begin a life of the session; returns what waited for it. Raises ``Missing``."""
        inlet = self._inlets.get(session) or self._unopened.pop(session, None) or Inlet(self._capacity)
        self._inlets[session] = inlet
        try:
            return inlet.open(life, epoch)
        finally:
            self._note(session, inlet)

    def raise_epoch(self, session: str, epoch: int) -> list[Chunk]:
        """Note that older epochs of the session are over; returns what waited for ``epoch``."""
        inlet = self._inlets[session]
        chunks = inlet.raise_epoch(epoch)
        self._note(session, inlet)
        return chunks

    def close(self, session: str) -> None:
        """Drop what waits of the session, and what may still come of it; idempotent."""
        if (inlet := self._inlets.pop(session, None)) is None:
            return
        self.drops["session_over"] += inlet.waiting
        self._news.pop(session, None)
        self._closed[session] = inlet.life
        self._closed.move_to_end(session)
        if len(self._closed) > CLOSED:
            self._closed.popitem(last=False)

    def accept(self, parcel: Parcel) -> list[Chunk]:
        """Take a parcel; returns the messages to file now. Raises ``Missing``."""
        session = parcel.session
        inlet = self._inlets.get(session) or self._unopened.get(session)
        if inlet is None:
            if parcel.life <= self._closed.get(session, 0):
                self.drops["stale"] += 1
                return []
            inlet = self._unopened[session] = Inlet(self._capacity, self._closed.get(session, 0))
            if len(self._unopened) > UNOPENED:
                self.drops["session_over"] += self._unopened.popitem(last=False)[1].waiting
        try:
            return inlet.accept(parcel)
        finally:
            self._note(session, inlet)

    def tell(self) -> None:
        """Tell the producer what was filed since the last call."""
        if self._news:
            self.receiver.file([Filed(session, inlet.life, inlet.filed)
                                for session in self._news if (inlet := self._inlets.get(session)) is not None])
            self._news.clear()

    def _note(self, session: str, inlet: Inlet) -> None:
        self.drops["stale"] += inlet.stale
        inlet.stale = 0
        if inlet.filed:
            self._news[session] = None
