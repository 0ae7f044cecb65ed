"""A stage process: ``python -m duologue.engine.worker FD``, where FD is its end of a socket to the hub.

It serves the stages it is told to hold until the hub goes away. It knows of every session in every stage the
life it is in and its epoch, so that stale messages are dropped before a stage sees them and stale outputs
before they cost anything further on.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import dataclass

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.connectors import Chunk, LocalConnector
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Interrupt,
    Open,
    ReplyAudio,
    ReplyText,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.stage import Stage
from duologue.engine.wire import (
    READ_BYTES,
    CannotStart,
    Decoder,
    Dropped,
    FromStage,
    Ready,
    Setup,
    Taken,
    ToHub,
    ToStage,
    ToWorker,
    encode,
    session_of,
)
from duologue.metrics import DROPS

NICENESS = 5
"""How much a stage process gives way to the server (setpriority(2)): its weight is about a third of the server's."""
STALE = DROPS.labels(what="message", reason="stale")


class Channel:
    """The worker's end of the socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = Decoder()

    def receive(self, *, wait: bool) -> list[ToWorker | ToHub] | None:
        """Messages that have come, waiting for some if ``wait``; None when the hub is gone."""
        if not wait and not select.select([self._sock], [], [], 0)[0]:
            return []
        data = self._sock.recv(READ_BYTES)
        return self._decoder.feed(data) if data else None

    def send(self, messages: list[ToHub]) -> None:
        """Send everything; the hub always reads."""
        if messages:
            self._sock.sendall(b"".join(encode(message) for message in messages))


class DropReport:
    """What was dropped in this process since it was last asked, by the stages as well: metrics are the hub's."""

    def __init__(self) -> None:
        self._reported: dict[tuple[str, str], float] = {}

    def changes(self) -> list[ToHub]:
        """The drops that have not been reported yet."""
        changed: list[ToHub] = []
        for sample in next(iter(DROPS.collect())).samples:
            if not sample.name.endswith("_total"):
                continue
            key = (sample.labels["what"], sample.labels["reason"])
            count = int(sample.value - self._reported.get(key, 0))
            if count:
                self._reported[key] = sample.value
                changed.append(Dropped(*key, count))
        return changed


@dataclass(slots=True)
class Seat:
    """A session in a stage: which life it is in, its epoch, and its edge to a stage in this process."""

    serial: int
    epoch: int
    edge: LocalConnector


class Worker:
    """The stages of one process and the sessions in them."""

    def __init__(self, graph: Graph, stages: dict[str, Stage]) -> None:
        self._graph = graph
        self._stages = stages
        self._seats: dict[str, dict[str, Seat]] = {name: {} for name in stages}
        self._replies: list[ToHub] = []
        self._drops = DropReport()

    def run(self, channel: Channel) -> None:
        """Serve until the hub is gone."""
        while True:
            idle = not any(stage.ready for stage in self._stages.values())
            messages = channel.receive(wait=idle)
            if messages is None:
                return
            for message in messages:
                if isinstance(message, ToStage):
                    self.dispatch(message)
            for name, stage in self._stages.items():
                if stage.ready:
                    self.step(name)
                    channel.send(self.replies())
            channel.send(self.replies())

    def replies(self) -> list[ToHub]:
        """What the hub is to be told now."""
        replies = [*self._replies, *self._drops.changes()]
        self._replies.clear()
        return replies

    def dispatch(self, envelope: ToStage) -> None:
        """Hand one message of the hub to its stage, unless it is stale."""
        name, message = envelope.stage, envelope.message
        session = session_of(message)
        seats = self._seats[name]
        if isinstance(message, Open):
            if session in seats:
                self._file(name, Close(session))
            seats[session] = Seat(envelope.serial, message.epoch,
                                  LocalConnector(max(1, self._graph.nodes[name].capacity)))
        seat = seats.get(session)
        if seat is None or seat.serial != envelope.serial:
            STALE.inc()
            return
        if isinstance(message, ReplyText | CodecFrames):
            self._replies.append(Taken(name, seat.serial, session, 1))
        if isinstance(message, Interrupt):
            seat.epoch = message.epoch
            STALE.inc(seat.edge.abort(message.epoch))
        self._file(name, message)
        if isinstance(message, Close):
            seats.pop(session, None)

    def step(self, name: str) -> None:
        """Let a stage do one slice of work and pass its outputs on."""
        try:
            outputs = self._stages[name].step()
        except Exception as error:
            traceback.print_exc()
            for session in list(self._seats[name]):
                self._fail(name, session, f"{type(error).__name__}: {error}")
            return
        for output in outputs:
            self._route(name, output)
        for seat in self._seats[name].values():
            self._hand_over(name, seat)

    def _route(self, name: str, output: StageOutput) -> None:
        session = session_of(output)
        seat = self._seats[name].get(session)
        if seat is None or (isinstance(output, ReplyText | CodecFrames | ReplyAudio)
                            and output.fence.epoch < seat.epoch):
            STALE.inc()
            return
        if isinstance(output, SessionFailed):
            self._fail(name, session, output.detail)
            return
        if isinstance(output, ReplyText | CodecFrames) and self._graph.nodes[name].direct:
            if not seat.edge.room:
                self._hand_over(name, seat)
            seat.edge.put(output)
            if isinstance(output, CodecFrames):
                return
        self._replies.append(FromStage(name, seat.serial, output))

    def _hand_over(self, name: str, seat: Seat) -> None:
        chunks: list[Chunk] = seat.edge.take()
        successor = self._graph.nodes[name].successor
        for chunk in chunks:
            assert successor is not None
            self._file(successor, chunk)
        seat.edge.taken(len(chunks))

    def _file(self, name: str, message: StageInput) -> None:
        session = session_of(message)
        seat = self._seats[name].get(session)
        if seat is None or (isinstance(message, ReplyText | CodecFrames)
                            and message.fence.epoch < seat.epoch):
            STALE.inc()
            return
        try:
            self._stages[name].receive(message)
        except Exception as error:
            traceback.print_exc()
            self._fail(name, session, f"{type(error).__name__}: {error}")

    def _fail(self, name: str, session: str, detail: str) -> None:
        seat = self._seats[name].pop(session, None)
        if seat is None:
            return
        try:
            self._stages[name].receive(Close(session))
        except Exception:
            traceback.print_exc()
        self._replies.append(FromStage(name, seat.serial, SessionFailed(session, detail)))


def serve(sock: socket.socket) -> None:
    """Load the stages the hub asks for and serve them."""
    channel = Channel(sock)
    setup: Setup | None = None
    while setup is None:
        messages = channel.receive(wait=True)
        if messages is None:
            return
        setup = next((message for message in messages if isinstance(message, Setup)), None)
    pipeline = PipelineConfig.model_validate_json(setup.pipeline)
    try:
        stages = {stage.name: load_stage(stage, pipeline)
                  for stage in pipeline.stages if stage.name in setup.stages}
    except ConfigError as error:
        channel.send([CannotStart(str(error))])
        return
    except Exception as error:
        traceback.print_exc()
        channel.send([CannotStart(f"a stage of process with {', '.join(setup.stages)} cannot be loaded: "
                                  f"{type(error).__name__}: {error}")])
        return
    channel.send([Ready()])
    Worker(Graph(pipeline), stages).run(channel)


def main() -> None:
    """Run the worker on the socket whose descriptor is the first argument."""
    # Ctrl-C reaches the whole process group; the hub decides what ends and when.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The media loop must have a processor when it asks for one: a late frame is heard, a late unit is not.
    os.nice(NICENESS)
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        try:
            serve(sock)
        except (BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    main()
