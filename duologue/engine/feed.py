"""What the hub gives the voice stages of one session: the edges that pass through it.

The talker reads the replies' text out of the hub's record: what does not fit now is sent, in larger pieces, when
there is room, and what a new talker has not spoken is sent again. Codec frames are nowhere recorded: they are passed
on, and their producer, which keeps to the room of the edge, is told how many have left it.

Where text reaches the talker directly, what a new talker has not spoken enters that edge at its producer's end, so
that what the thinker says next cannot come before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from duologue.engine.connectors import Filed, Missing, Outlet
from duologue.engine.messages import CodecFrames, Fence, ReplyText, StageInput
from duologue.engine.pipeline import Graph
from duologue.engine.turns import Turn


class Send(Protocol):
    """How a stage is sent a message."""

    def __call__(self, stage: str, message: StageInput | Filed, number: int = 0) -> None:
        """Send it; one that crosses an edge has its ``number`` there."""


class Feed:
    """The edges of one session."""

    def __init__(self, session: str, graph: Graph, send: Send) -> None:
        self._session = session
        self._graph = graph
        self._send = send
        self._edges: dict[str, Outlet] = {}
        self._dropped: dict[str, int] = {}
        """Codec frames of each stage that went no further than here."""
        self._next: dict[str, tuple[int, int]] = {}
        """Turn and sequence number that each stage's next codec frames have, if it goes on with that turn."""

    def start_over(self, stage: str, life: int) -> None:
        """Note that ``stage`` is in a new life of the session, in which it was given nothing yet."""
        source = self._graph.nodes[self._graph.source(stage)]
        if not source.direct:
            self._edges[stage] = Outlet(self._session, life, source.capacity)
            self._dropped[source.name] = 0
            self._next[source.name] = -1, 0

    def text(self, turns: Iterable[Turn], epoch: int) -> None:
        """Give the talker what it has not had of these replies' text."""
        if not self._graph.voice:
            return
        talker = self._graph.voice[0]
        edge = self._edges.get(talker)
        for turn in turns:
            while (piece := turn.unsent()) is not None:
                if edge is not None and not edge.room:
                    return
                end, rate = piece
                last = turn.text_whole and end == len(turn.text)
                text = ReplyText(Fence(self._session, epoch, turn.number, turn.sent_seq),
                                 turn.sent, turn.text[turn.sent:end], last, rate)
                turn.sent, turn.sent_last = end, last
                turn.sent_seq += 1
                if edge is None:
                    self._send(self._graph.thinker, text)
                else:
                    edge.put(text)
                    self._pass_on(talker)

    def frames(self, source: str, frames: CodecFrames) -> bool:
        """Pass codec frames on; False for those that were passed on before. Raises ``Missing``."""
        target = self._graph.nodes[source].successor
        if target is None:
            return True
        turn, seq = self._next[source]
        place = frames.fence.turn, frames.fence.seq
        if place < (turn, seq):
            return False
        if place != ((turn, seq) if frames.fence.turn == turn else (frames.fence.turn, 0)):
            self.drop(source)
            raise Missing("a piece of the reply's codec frames is missing")
        self._next[source] = frames.fence.turn, frames.fence.seq + 1
        # It has room: their producer counts on the same edge what was put here and what was dropped.
        self._edges[target].put(frames)
        self._pass_on(target)
        return True

    def drop(self, source: str) -> None:
        """Note that a message of codec frames was stale, and went no further."""
        target = self._graph.nodes[source].successor
        if target is not None:
            self._dropped[source] += 1
            self._tell(source, self._edges[target])

    def taken(self, stage: str, count: int) -> None:
        """Note that ``stage`` has filed ``count`` messages in its present life."""
        if (edge := self._edges.get(stage)) is not None:
            edge.filed(edge.life, count)
            self._pass_on(stage)
            if (source := self._graph.source(stage)) != self._graph.thinker:
                self._tell(source, edge)

    def raise_epoch(self, epoch: int) -> int:
        """Drop what waits and is of an epoch before ``epoch``; returns how many messages."""
        return sum(edge.raise_epoch(epoch) for edge in self._edges.values())

    def _pass_on(self, stage: str) -> None:
        edge = self._edges[stage]
        while (parcel := edge.next()) is not None:
            self._send(stage, parcel.chunk, parcel.number)
            edge.sent()

    def _tell(self, source: str, edge: Outlet) -> None:
        self._send(source, Filed(self._session, edge.life, edge.gone + self._dropped[source]))
