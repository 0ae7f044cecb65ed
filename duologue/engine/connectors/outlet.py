"""The producer's end of an edge: how much of a session may be on it, and what waits until there is room."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from duologue.engine.connectors.base import Chunk, Full, Parcel, Sender
from duologue.engine.messages import CodecFrames, Conditioning, ReplyText


class Outlet:
    """One life of one session: at most ``capacity`` messages are on the edge, under way or waiting at this end.

    Text always finds room, since what does not fit is joined to what waits. Codec frames do not, and so their
    producer is told to hold before the edge is full.
    """

    def __init__(self, session: str, life: int, capacity: int) -> None:
        self.capacity = capacity
        self.life = life
        self._session = session
        self._waiting: deque[Chunk] = deque()
        self._number = 0
        self._filed = 0
        self._held = False

    @property
    def room(self) -> int:
        """Messages it takes now."""
        return max(0, self._free)

    @property
    def gone(self) -> int:
        """Messages that the consumer has filed."""
        return self._filed

    @property
    def _under_way(self) -> int:
        return self._number - self._filed

    @property
    def _free(self) -> int:
        """Less than 0 while text waits beyond the capacity."""
        return self.capacity - len(self._waiting) - self._under_way

    def put(self, chunk: Chunk) -> None:
        """Take one message from the producer; raises ``Full``."""
        if not self.room:
            if isinstance(chunk, CodecFrames):
                raise Full(f"{self.capacity} messages are on the edge")
            joined = join(self._waiting[-1], chunk) if self._waiting else None
            if joined is not None:
                self._waiting[-1] = joined
                return
            if len(self._waiting) >= self.capacity:
                raise Full(f"{self.capacity} messages of text wait that cannot be joined")
        self._waiting.append(chunk)

    def next(self) -> Parcel | None:
        """The oldest message that waits, if it may be sent; it stays until ``sent``."""
        if not self._waiting or self._under_way >= self.capacity:
            return None
        return Parcel(self._session, self.life, self._number, self._waiting[0])

    def sent(self) -> None:
        """Note that what ``next`` gave was sent."""
        self._waiting.popleft()
        self._number += 1

    def filed(self, life: int, count: int) -> None:
        """Note that the consumer has filed ``count`` messages of ``life`` in all."""
        if life == self.life:
            self._filed = max(self._filed, min(count, self._number))

    def raise_epoch(self, epoch: int) -> int:
        """Drop what waits and is of an epoch before ``epoch``; returns how many."""
        fresh = [chunk for chunk in self._waiting if chunk.fence.epoch >= epoch]
        dropped = len(self._waiting) - len(fresh)
        self._waiting = deque(fresh)
        return dropped

    def hold(self) -> bool | None:
        """Whether the producer is to hold from now on, or to go on; None when nothing changed.

        Told at half, so that what the producer has made by then still finds room.
        """
        if self._held and self._free * 4 >= self.capacity * 3:
            self._held = False
        elif not self._held and self._free * 2 <= self.capacity:
            self._held = True
        else:
            return None
        return self._held


def join(first: Chunk, second: Chunk) -> ReplyText | None:
    """Both as one piece of text; None when they are not two pieces in a row that are said alike."""
    if not isinstance(first, ReplyText) or not isinstance(second, ReplyText):
        return None
    if ((first.fence.epoch, first.fence.turn, first.rate) != (second.fence.epoch, second.fence.turn, second.rate)
            or first.start + len(first.text) != second.start or first.last
            or (first.conditioning is None) != (second.conditioning is None)):
        return None
    conditioning = None
    if first.conditioning is not None and second.conditioning is not None:
        one, other = first.conditioning, second.conditioning
        conditioning = Conditioning(np.concatenate([one.tokens, other.tokens]), np.concatenate([one.rows, other.rows]),
                                    np.concatenate([one.ends, other.ends]))
    return replace(first, text=first.text + second.text, last=second.last, conditioning=conditioning)


class Outlets:
    """All sessions of an edge, which take turns: none waits for another's long reply."""

    def __init__(self, sender: Sender, capacity: int) -> None:
        self.sender = sender
        self._capacity = capacity
        self._outlets: dict[str, Outlet] = {}
        self._turns: deque[str] = deque()
        """Sessions that may have something to send."""
        self._changed: set[str] = set()
        """Sessions whose producer may have to hold, or to go on."""

    def open(self, session: str, life: int) -> None:
        """Begin a life of the session; what waited of the one before is dropped."""
        self.close(session)
        self._outlets[session] = Outlet(session, life, self._capacity)

    def close(self, session: str) -> None:
        """Drop what waits of the session; idempotent."""
        if self._outlets.pop(session, None) is not None and session in self._turns:
            self._turns.remove(session)
        self._changed.discard(session)

    def room(self, session: str) -> int:
        """Messages of the session it takes now; raises ``KeyError`` when the session is not open."""
        return self._outlets[session].room

    def put(self, session: str, chunk: Chunk) -> None:
        """Take one message from the producer; raises ``Full``, and ``KeyError`` when the session is not open."""
        self._outlets[session].put(chunk)
        self._due(session)

    def raise_epoch(self, session: str, epoch: int) -> int:
        """Drop what waits of the session and is of an epoch before ``epoch``; returns how many messages."""
        outlet = self._outlets.get(session)
        if outlet is None:
            return 0
        self._changed.add(session)
        return outlet.raise_epoch(epoch)

    def pump(self) -> bool:
        """Send what may be sent now; returns whether anything was."""
        for filed in self.sender.filed():
            if (outlet := self._outlets.get(filed.session)) is not None:
                outlet.filed(filed.life, filed.count)
                self._due(filed.session)
        moved = False
        while self._turns:
            session = self._turns[0]
            outlet = self._outlets[session]
            parcel = outlet.next()
            if parcel is not None and not self.sender.send(parcel):
                break
            self._turns.popleft()
            if parcel is not None:
                moved = True
                outlet.sent()
                self._turns.append(session)
        self.sender.flush()
        return moved

    def holds(self) -> list[tuple[str, bool]]:
        """Sessions whose producer is to hold from now on (true), or to go on."""
        changed, self._changed = self._changed, set()
        return [(session, held) for session in changed if (held := self._outlets[session].hold()) is not None]

    def _due(self, session: str) -> None:
        self._changed.add(session)
        if session not in self._turns:
            self._turns.append(session)
