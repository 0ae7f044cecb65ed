"""An edge of each kind between two ends in this process, with a hub that tells each end of lives and epochs when the
test says so, and faults between them: what is sent may come late or twice, and either end may be lost."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Protocol

from duologue.engine.config import EdgeConfig
from duologue.engine.connectors import (
    Chunk,
    Filed,
    Full,
    Inlets,
    LocalConnector,
    Outlets,
    Parcel,
    Sender,
    ShmEdge,
    ShmReceiver,
    ShmSender,
    SocketReceiver,
)
from duologue.engine.feed import Feed
from duologue.engine.messages import CodecFrames, Hold, Interrupt, Open, StageInput
from duologue.engine.pipeline import Graph
from duologue.engine.wire import Decoder, Taken, ToHub, ToStage, ToWorker, encode
from tests.engine.scripted import pipeline

KINDS = ("local", "shm", "socket")


class Faulty:
    """A sender whose parcels wait until they are let go, and may be sent twice."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.waiting: deque[Parcel] = deque()

    def send(self, parcel: Parcel) -> bool:
        self.waiting.append(parcel)
        return True

    def let_go(self, *, twice: bool = False) -> None:
        if self.waiting and self._sender.send(self.waiting[0]):
            parcel = self.waiting.popleft()
            if twice:
                self._sender.send(parcel)
        self._sender.flush()

    def filed(self) -> list[Filed]:
        # What was filed may be told twice, too.
        return [filed for filed in self._sender.filed() for _ in range(2)]

    def flush(self) -> None:
        self._sender.flush()

    def fileno(self) -> int | None:
        return self._sender.fileno()

    def clear(self) -> None:
        self._sender.clear()


class Producer(Protocol):
    """The end that puts."""

    def open(self, session: str, life: int) -> None: ...
    def interrupt(self, session: str, epoch: int) -> None: ...
    def close(self, session: str) -> None: ...
    def put(self, chunk: Chunk) -> None: ...
    def pump(self, *, twice: bool = False) -> None:
        """Let what may be sent go, and learn of what was filed."""


class Consumer:
    """The end that files; ``filed`` is what it has, with the life it was filed in."""

    def __init__(self, inlets: Inlets) -> None:
        self.inlets = inlets
        self.lives: dict[str, tuple[int, int]] = {}
        self.filed: list[tuple[int, int, Chunk]] = []
        """With the life and the epoch that the hub had told of then."""

    def open(self, session: str, life: int, epoch: int) -> None:
        self.lives[session] = life, epoch
        self._file(session, self.inlets.open(session, life, epoch))

    def interrupt(self, session: str, epoch: int) -> None:
        self.lives[session] = self.lives[session][0], epoch
        self._file(session, self.inlets.raise_epoch(session, epoch))

    def close(self, session: str) -> None:
        self.lives.pop(session, None)
        self.inlets.close(session)

    def receive(self) -> None:
        self.inlets.receiver.clear()
        for parcel in self.inlets.receiver.receive():
            self._file(parcel.session, self.inlets.accept(parcel))
        self.inlets.tell()

    def _file(self, session: str, chunks: list[Chunk]) -> None:
        self.filed += [(*self.lives[session], chunk) for chunk in chunks]
        self.inlets.tell()


class DirectProducer:
    """The producer's end of an edge that does not pass the hub."""

    def __init__(self, sender: Sender, capacity: int) -> None:
        self._faulty = Faulty(sender)
        self.outlets = Outlets(self._faulty, capacity)
        self.held: dict[str, bool] = {}

    def open(self, session: str, life: int) -> None:
        self.held.pop(session, None)
        self.outlets.open(session, life)

    def interrupt(self, session: str, epoch: int) -> None:
        self.outlets.raise_epoch(session, epoch)

    def close(self, session: str) -> None:
        self.outlets.close(session)

    def put(self, chunk: Chunk) -> None:
        self.outlets.put(chunk.fence.session, chunk)

    def pump(self, *, twice: bool = False) -> None:
        self.outlets.sender.clear()
        self.outlets.pump()
        self.held |= dict(self.outlets.holds())
        self._faulty.let_go(twice=twice)


class HubProducer:
    """The hub's end of an edge that passes it."""

    def __init__(self, capacity: int, replies: deque[bytes]) -> None:
        config = pipeline("a", "b", "c").model_dump()
        for edge in config["edges"]:
            edge["capacity"] = capacity
        self._graph = Graph(type(pipeline("a", "b", "c")).model_validate(config))
        self._feeds: dict[str, Feed] = {}
        self._lives: dict[str, int] = {}
        self.sent: deque[bytes] = deque()
        self.to_worker: deque[bytes] = deque()
        self._replies = replies
        self.held: dict[str, bool] = {}

    def open(self, session: str, life: int) -> None:
        self._lives[session] = life
        self.held.pop(session, None)

        def send(stage: str, message: StageInput, number: int = 0) -> None:
            if isinstance(message, Hold):
                self.held[session] = message.held
            else:
                self.sent.append(encode(ToStage(stage, life, message, number)))

        self._feeds[session] = Feed(session, self._graph, send)
        self._feeds[session].start_over("codec", life)

    def interrupt(self, session: str, epoch: int) -> None:
        self._feeds[session].raise_epoch(epoch)

    def close(self, session: str) -> None:
        self._feeds.pop(session, None)
        self._lives.pop(session, None)

    def put(self, chunk: Chunk) -> None:
        assert isinstance(chunk, CodecFrames)
        self._feeds[chunk.fence.session].frames("talker", chunk)

    def pump(self, *, twice: bool = False) -> None:
        if self.sent:
            data = self.sent.popleft()
            self.to_worker.extend([data] * (2 if twice else 1))
        while self._replies:
            (taken,) = Decoder().feed(self._replies.popleft())
            assert isinstance(taken, Taken)
            if self._lives.get(taken.session) == taken.serial:
                self._feeds[taken.session].taken("codec", taken.count)


class HubReceiver(SocketReceiver):
    """Reads what the hub sent."""

    def __init__(self, hub: HubProducer, replies: deque[bytes]) -> None:
        super().__init__(lambda filed: replies.append(encode(Taken("codec", filed.life, filed.session, filed.count))))
        self._hub = hub

    def receive(self) -> list[Parcel]:
        while self._hub.to_worker:
            (message,) = Decoder().feed(self._hub.to_worker.popleft())
            assert isinstance(message, ToStage)
            assert isinstance(message.message, CodecFrames)
            self.push(Parcel(message.message.fence.session, message.serial, message.number, message.message))
        return super().receive()


class Edge:
    """One edge, its hub and both ends. The hub's words wait in a queue for each end, as they do on two sockets."""

    def __init__(self, kind: str, capacity: int = 4, ring_bytes: int = 1 << 16) -> None:
        self.kind = kind
        self.capacity = capacity
        self._local = LocalConnector()
        self._replies: deque[bytes] = deque()
        if kind == "shm":
            config = EdgeConfig(source="a", target="b", connector="shm", ring_bytes=ring_bytes)
            self.memory = ShmEdge.create(config)
            weakref.finalize(self, self.memory.close)
        self.to_producer: deque[tuple[str, int, int | None]] = deque()
        self.to_consumer: deque[tuple[str, int, int | None]] = deque()
        self.producer = self._new_producer()
        self.consumer = self._new_consumer()

    def _new_producer(self) -> DirectProducer | HubProducer:
        if self.kind == "socket":
            return HubProducer(self.capacity, self._replies)
        return DirectProducer(ShmSender(self.memory) if self.kind == "shm" else self._local, self.capacity)

    def _new_consumer(self) -> Consumer:
        if isinstance(self.producer, HubProducer):
            return Consumer(Inlets(HubReceiver(self.producer, self._replies), self.capacity))
        return Consumer(Inlets(ShmReceiver(self.memory) if self.kind == "shm" else self._local, self.capacity))

    def lose_producer(self) -> None:
        """Its process is killed; another one comes."""
        if self.kind == "local":
            self.lose_consumer()
        elif self.kind == "shm":
            self.producer = self._new_producer()
        self.to_producer.clear()

    def lose_consumer(self) -> None:
        """Its process is killed; another one comes. On a local edge it is the producer's, too."""
        filed = self.consumer.filed
        if isinstance(self.producer, HubProducer):
            self.producer.sent.clear()
            self.producer.to_worker.clear()
            self._replies.clear()
        elif self.kind == "local":
            self._local = LocalConnector()
            self.producer = self._new_producer()
            self.to_producer.clear()
        self.consumer = self._new_consumer()
        self.consumer.filed = filed
        self.to_consumer.clear()

    # --- the hub --------------------------------------------------------------------------------------------

    def open(self, session: str = "s", life: int = 1, epoch: int = 0) -> None:
        self.to_consumer.append((session, epoch, life))
        self.to_producer.append((session, epoch, life))

    def interrupt(self, epoch: int, session: str = "s") -> None:
        self.to_consumer.append((session, epoch, None))
        self.to_producer.append((session, epoch, None))

    def tell_producer(self) -> None:
        """Give the producer's end the hub's next word."""
        if self.to_producer:
            session, epoch, life = self.to_producer.popleft()
            if life is not None:
                self.producer.open(session, life)
            else:
                self.producer.interrupt(session, epoch)

    def tell_consumer(self) -> None:
        if self.to_consumer:
            session, epoch, life = self.to_consumer.popleft()
            if life is not None:
                self.consumer.open(session, life, epoch)
            else:
                self.consumer.interrupt(session, epoch)

    # --- all together ---------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let everything come that is due."""
        while self.to_consumer:
            self.tell_consumer()
        while self.to_producer:
            self.tell_producer()
        for _ in range(200):
            self.producer.pump()
            self.consumer.receive()
        self.producer.pump()

    @property
    def filed(self) -> list[Chunk]:
        return [chunk for _, _, chunk in self.consumer.filed]


__all__ = ["KINDS", "Edge", "Full", "Interrupt", "Open", "ToHub", "ToWorker"]
