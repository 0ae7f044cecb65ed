"""The stages of one process and the sessions in them: what each is given, and where what it says goes.

A worker knows of every session in every stage the life it is in and its epoch, so that stale messages are dropped
before a stage sees them and stale outputs before they cost anything further on. It waits for nothing:
``worker_process.py`` reads and sends for it, and turns to it when a doorbell rang.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from duologue.engine.connectors import (
    Chunk,
    Filed,
    Full,
    Gate,
    Inlets,
    LocalConnector,
    Missing,
    Outlets,
    Parcel,
    Receiver,
    Sender,
    SocketReceiver,
    SocketSender,
)
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Hold,
    Interrupt,
    Open,
    ReplyAudio,
    ReplyText,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.pipeline import Graph
from duologue.engine.stage import Stage
from duologue.engine.wire import Counted, FromStage, Taken, ToHub, ToStage, session_of
from duologue.metrics import DROPS, IN_STAGES


class Tally:
    """What was counted in this process since it was last asked, by the stages as well: metrics are the hub's."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}

    def changes(self) -> list[ToHub]:
        """The counts that have not been reported yet."""
        changed: list[ToHub] = []
        for name, counter in IN_STAGES.items():
            for sample in next(iter(counter.collect())).samples:
                if not sample.name.endswith("_total"):
                    continue
                key = (name, tuple(sample.labels.items()))
                count = int(sample.value - self._reported.get(key, 0))
                if count:
                    self._reported[key] = sample.value
                    changed.append(Counted(*key, count))
        return changed


@dataclass(slots=True)
class Seat:
    """A session in a stage: which life it is in, its epoch, and what waits for the whole of its reply."""

    serial: int
    epoch: int
    gate: Gate | None


class Worker:
    """The stages of one process.

    ``senders`` and ``receivers`` are the ends of edges to other processes that do not pass the hub, by the stage they
    belong to.
    """

    def __init__(self, graph: Graph, stages: Mapping[str, Stage], *, senders: Mapping[str, Sender] | None = None,
                 receivers: Mapping[str, Receiver] | None = None) -> None:
        self.stages = stages
        self._graph = graph
        self._seats: dict[str, dict[str, Seat]] = {name: {} for name in stages}
        self._replies: list[ToHub] = []
        self._tally = Tally()
        self._outlets: dict[str, Outlets] = {}
        self._inlets: dict[str, Inlets] = {}
        self._from_hub: dict[str, SocketReceiver] = {}
        self._to_hub: dict[str, SocketSender] = {}
        for name, sender in (senders or {}).items():
            self._outlets[name] = Outlets(sender, graph.nodes[name].capacity)
        for name, receiver in (receivers or {}).items():
            self._inlets[name] = Inlets(receiver, graph.nodes[graph.source(name)].capacity)
        for name in stages:
            self._join_behind(name)
            self._join_before(name)

    def _join_behind(self, name: str) -> None:
        """Make the edge after ``name`` by which its codec frames go to the hub."""
        node = self._graph.nodes[name]
        if name != self._graph.thinker and node.successor is not None and not node.direct:
            sender = self._to_hub[name] = SocketSender(partial(self._say, name))
            self._outlets[name] = Outlets(sender, node.capacity)

    def _join_before(self, name: str) -> None:
        """Make the edge before ``name``, if it needs nothing of other processes."""
        if name == self._graph.thinker or name in self._inlets:
            return
        source = self._graph.nodes[self._graph.source(name)]
        receiver: Receiver
        if source.direct:
            if source.name not in self.stages:
                return
            receiver = connector = LocalConnector()
            self._outlets[source.name] = Outlets(connector, source.capacity)
        else:
            receiver = self._from_hub[name] = SocketReceiver(partial(self._tell, name))
        self._inlets[name] = Inlets(receiver, source.capacity)

    # --- for the loop ---------------------------------------------------------------------------------------

    def doorbells(self) -> Iterator[tuple[int, Callable[[], None]]]:
        """Descriptors to wait for, and what to do when one is readable."""
        for name, outlets in self._outlets.items():
            if (fileno := outlets.sender.fileno()) is not None:
                yield fileno, partial(self._answer, outlets.sender, self.pump, name)
        for name, inlets in self._inlets.items():
            if (fileno := inlets.receiver.fileno()) is not None:
                yield fileno, partial(self._answer, inlets.receiver, self.receive, name)

    @staticmethod
    def _answer(end: Sender | Receiver, act: Callable[[str], None], name: str) -> None:
        end.clear()
        act(name)

    def replies(self) -> list[ToHub]:
        """What the hub is to be told now."""
        for inlets in self._inlets.values():
            for reason, count in inlets.drops.items():
                DROPS.labels(what="message", reason=reason).inc(count)
            inlets.drops.clear()
        replies = [*self._replies, *self._tally.changes()]
        self._replies.clear()
        return replies

    def dispatch(self, envelope: ToStage) -> None:
        """Take one message of the hub."""
        name, message = envelope.stage, envelope.message
        session = session_of(message)
        if isinstance(message, Filed):
            self._to_hub[name].push(message)
            self.pump(name)
            return
        if isinstance(message, ReplyText | CodecFrames) and name in self._from_hub:
            self._from_hub[name].push(Parcel(session, envelope.serial, envelope.number, message))
            self.receive(name)
            return
        if isinstance(message, Open):
            self._open(name, envelope.serial, message)
            return
        seat = self._seats[name].get(session)
        if seat is None or seat.serial != envelope.serial:
            _stale()
        elif isinstance(message, ReplyText | CodecFrames):
            self._put(name, seat, message)
            self.pump(name)
        elif isinstance(message, Interrupt):
            self._interrupt(name, seat, message)
        elif isinstance(message, Close):
            self._file(name, message)
            self._leave(name, session)
        else:
            self._file(name, message)

    def step(self, name: str) -> None:
        """Let a stage do one slice of work and pass its outputs on."""
        try:
            outputs = self.stages[name].step()
        except Exception as error:
            traceback.print_exc()
            for session in list(self._seats[name]):
                self._fail(name, session, f"{type(error).__name__}: {error}")
            return
        for output in outputs:
            self._route(name, output)
        self.pump(name)

    def pump(self, name: str) -> None:
        """Send what may be sent over the edge after ``name``, and hold or release its sessions."""
        if (outlets := self._outlets.get(name)) is None:
            return
        successor = self._graph.nodes[name].successor
        while outlets.pump() and successor is not None and successor in self.stages:
            self.receive(successor)
        for session, held in outlets.holds():
            self._file(name, Hold(session, held))

    def receive(self, name: str) -> None:
        """File what has come over the edge before ``name``."""
        inlets = self._inlets[name]
        for parcel in inlets.receiver.receive():
            self._arrive(name, parcel.session, partial(inlets.accept, parcel))
        inlets.tell()

    # --- sessions -------------------------------------------------------------------------------------------

    def _open(self, name: str, serial: int, message: Open) -> None:
        session, seats = message.session, self._seats[name]
        if session in seats:
            self._file(name, Close(session))
        seats[session] = Seat(serial, message.epoch, None if self._graph.async_chunk else Gate())
        if (outlets := self._outlets.get(name)) is not None:
            outlets.open(session, serial)
        self._file(name, message)
        if (inlets := self._inlets.get(name)) is not None and session in seats:
            self._arrive(name, session, partial(inlets.open, session, serial, message.epoch))
            inlets.tell()

    def _interrupt(self, name: str, seat: Seat, message: Interrupt) -> None:
        session, seat.epoch = message.session, message.epoch
        if (outlets := self._outlets.get(name)) is not None:
            _stale(outlets.raise_epoch(session, message.epoch))
        if seat.gate is not None:
            _stale(seat.gate.raise_epoch(message.epoch))
        self._file(name, message)
        if (inlets := self._inlets.get(name)) is not None and session in self._seats[name]:
            self._arrive(name, session, partial(inlets.raise_epoch, session, message.epoch))
            inlets.tell()
        self.pump(name)

    def _leave(self, name: str, session: str) -> Seat | None:
        if (outlets := self._outlets.get(name)) is not None:
            outlets.close(session)
        if (inlets := self._inlets.get(name)) is not None:
            inlets.close(session)
        return self._seats[name].pop(session, None)

    def _fail(self, name: str, session: str, detail: str) -> None:
        seat = self._leave(name, session)
        if seat is None:
            return
        try:
            self.stages[name].receive(Close(session))
        except Exception:
            traceback.print_exc()
        self._replies.append(FromStage(name, seat.serial, SessionFailed(session, detail)))

    # --- messages -------------------------------------------------------------------------------------------

    def _arrive(self, name: str, session: str, chunks: Callable[[], list[Chunk]]) -> None:
        """File what an inlet gives; a gap fails the session."""
        try:
            arrived = chunks()
        except Missing as missing:
            self._fail(name, session, str(missing))
            return
        for chunk in arrived:
            seat = self._seats[name].get(session)
            if seat is None:
                _stale()
                continue
            for admitted in [chunk] if seat.gate is None else seat.gate.admit(chunk):
                self._file(name, admitted)

    def _file(self, name: str, message: StageInput) -> None:
        session = session_of(message)
        if session not in self._seats[name]:
            _stale()
            return
        try:
            self.stages[name].receive(message)
        except Exception as error:
            traceback.print_exc()
            self._fail(name, session, f"{type(error).__name__}: {error}")

    def _route(self, name: str, output: StageOutput) -> None:
        session = session_of(output)
        seat = self._seats[name].get(session)
        if seat is None or (isinstance(output, ReplyText | CodecFrames | ReplyAudio)
                            and output.fence.epoch < seat.epoch):
            _stale()
            return
        if isinstance(output, SessionFailed):
            self._fail(name, session, output.detail)
            return
        if isinstance(output, ReplyText | CodecFrames) and name in self._outlets:
            self._put(name, seat, output)
        if isinstance(output, CodecFrames):
            return
        if isinstance(output, ReplyText) and output.conditioning is not None:
            # It is for the next stage, and large.
            output = replace(output, conditioning=None)
        self._replies.append(FromStage(name, seat.serial, output))

    def _put(self, name: str, seat: Seat, chunk: Chunk) -> None:
        if chunk.fence.epoch < seat.epoch:
            _stale()
            return
        session, outlets = chunk.fence.session, self._outlets[name]
        try:
            if not outlets.room(session):
                self.pump(name)
            outlets.put(session, chunk)
        except Full as full:
            DROPS.labels(what="message", reason="edge_full").inc()
            self._fail(name, session, f"it was told to hold and went on: {full}")

    def _say(self, name: str, parcel: Parcel) -> None:
        self._replies.append(FromStage(name, parcel.life, parcel.chunk))

    def _tell(self, name: str, filed: Filed) -> None:
        self._replies.append(Taken(name, filed.life, filed.session, filed.count))


def _stale(count: int = 1) -> None:
    if count:
        DROPS.labels(what="message", reason="stale").inc(count)
