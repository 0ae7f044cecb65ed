"""What the hub gives the voice stages of one session, no faster than their connectors have room.

The talker reads the replies' text out of the hub's record: what does not fit now is sent, in larger pieces, when
there is room, and what a new talker has not spoken is sent again. Codec frames are nowhere recorded, so their
producer is held back before its edge is full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from duologue.engine.connectors import SocketConnector
from duologue.engine.messages import CodecFrames, Fence, Hold, ReplyText, StageInput
from duologue.engine.pipeline import Graph
from duologue.engine.turns import Turn


class Feed:
    """The edges of one session that pass through the hub."""

    def __init__(self, session: str, graph: Graph, send: Callable[[str, StageInput], None]) -> None:
        self._session = session
        self._graph = graph
        self._send = send
        self._edges: dict[str, SocketConnector] = {}
        self._held: set[str] = set()
        """Stages whose producer is held back."""

    def start_over(self, stage: str) -> None:
        """Note that ``stage`` has a new life of the session, which was given nothing yet."""
        self._edges[stage] = SocketConnector(self._graph.nodes[self._source(stage)].capacity)
        self._held.discard(stage)

    def text(self, turns: Iterable[Turn], epoch: int) -> None:
        """Give the talker what it has not had of these replies' text."""
        if not self._graph.voice:
            return
        talker = self._graph.voice[0]
        edge = self._edges[talker]
        for turn in turns:
            while (piece := turn.unsent()) is not None:
                if not edge.room:
                    return
                end, rate = piece
                last = turn.text_whole and end == len(turn.text)
                edge.put(ReplyText(Fence(self._session, epoch, turn.number, turn.sent_seq),
                                   turn.sent, turn.text[turn.sent:end], last, rate))
                turn.sent, turn.sent_last = end, last
                turn.sent_seq += 1
                self._pass_on(talker)

    def frames(self, source: str, frames: CodecFrames) -> None:
        """Pass codec frames on; raises ``Full`` when their producer goes on though it is held back."""
        target = self._graph.nodes[source].successor
        if target is None:
            return
        edge = self._edges[target]
        edge.put(frames)
        self._pass_on(target)
        # Told at half, so that what the producer has made by then still finds room.
        if target not in self._held and edge.room * 2 <= edge.capacity:
            self._held.add(target)
            self._send(source, Hold(self._session, held=True))

    def taken(self, stage: str, count: int) -> None:
        """Note that ``stage`` has filed ``count`` messages."""
        edge = self._edges[stage]
        edge.taken(count)
        if stage in self._held and edge.room * 4 >= edge.capacity * 3:
            self._held.discard(stage)
            self._send(self._source(stage), Hold(self._session, held=False))

    def raise_epoch(self, epoch: int) -> int:
        """Drop what waits and is of an epoch before ``epoch``; returns how many messages."""
        return sum(edge.abort(epoch) for edge in self._edges.values())

    def _pass_on(self, stage: str) -> None:
        for message in self._edges[stage].take():
            self._send(stage, message)

    def _source(self, stage: str) -> str:
        return self._graph.stages[self._graph.stages.index(stage) - 1]
