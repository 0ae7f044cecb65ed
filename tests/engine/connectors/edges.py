"""An edge of each kind between two ends in this process, with a hub that tells each end of lives and epochs when the
test says so, and faults between them: what is sent may come late or twice, and either end may be lost."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable

from duologue.engine import PipelineConfig
from duologue.engine.config import EdgeConfig
from duologue.engine.connectors import (
    Chunk,
    Filed,
    Inlets,
    LocalConnector,
    Outlets,
    Parcel,
    Receiver,
    Sender,
    ShmEdge,
    ShmReceiver,
    ShmSender,
    SocketReceiver,
    SocketSender,
)
from duologue.engine.feed import Feed
from duologue.engine.messages import CodecFrames, StageInput
from duologue.engine.pipeline import Graph
from duologue.engine.wire import Decoder, FromStage, Taken, ToStage, encode
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


class Producer:
    """The end that puts."""

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


class Hub:
    """What stands in the middle of an edge that passes the hub, and the sockets to both processes.

    It is in the producer's newest life and epoch from the moment it says so, and passes nothing older on.
    """

    def __init__(self, capacity: int) -> None:
        config = pipeline("a", "b", "c").model_dump()
        for edge in config["edges"]:
            edge["capacity"] = capacity
        self._graph = Graph(PipelineConfig.model_validate(config))
        self._feeds: dict[str, Feed] = {}
        self._lives: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self.sender = SocketSender(lambda parcel: self.from_talker.append(
            encode(FromStage("talker", parcel.life, parcel.chunk))))
        self.receiver = HubReceiver(self)
        self.from_talker: deque[bytes] = deque()
        self.to_talker: deque[bytes] = deque()
        self.from_codec: deque[bytes] = deque()
        self.to_codec: deque[bytes] = deque()

    def open(self, session: str, life: int, epoch: int) -> None:
        def send(stage: str, message: StageInput | Filed, number: int = 0) -> None:
            queue = self.to_codec if stage == "codec" else self.to_talker
            queue.append(encode(ToStage(stage, life, message, number)))

        self._lives[session], self._epochs[session] = life, epoch
        self._feeds[session] = Feed(session, self._graph, send)
        self._feeds[session].start_over("codec", life)

    def interrupt(self, session: str, epoch: int) -> None:
        self._epochs[session] = epoch
        self._feeds[session].raise_epoch(epoch)

    def work(self) -> None:
        """Read what either process has said, and let the talker's process read what it is told."""
        for data in drain(self.from_talker):
            (said,) = Decoder().feed(data)
            assert isinstance(said, FromStage)
            assert isinstance(said.message, CodecFrames)
            session = said.message.fence.session
            if self._lives.get(session) == said.serial:
                if said.message.fence.epoch < self._epochs[session]:
                    self._feeds[session].drop("talker")
                else:
                    self._feeds[session].frames("talker", said.message)
        for data in drain(self.from_codec):
            (taken,) = Decoder().feed(data)
            assert isinstance(taken, Taken)
            if self._lives.get(taken.session) == taken.serial:
                self._feeds[taken.session].taken("codec", taken.count)
        for data in drain(self.to_talker):
            (told,) = Decoder().feed(data)
            assert isinstance(told, ToStage)
            assert isinstance(told.message, Filed)
            self.sender.push(told.message)


class HubReceiver(SocketReceiver):
    """Reads what the hub sent."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(lambda filed: hub.from_codec.append(
            encode(Taken("codec", filed.life, filed.session, filed.count))))
        self._hub = hub

    def receive(self) -> list[Parcel]:
        for data in drain(self._hub.to_codec):
            (message,) = Decoder().feed(data)
            assert isinstance(message, ToStage)
            assert isinstance(message.message, CodecFrames)
            self.push(Parcel(message.message.fence.session, message.serial, message.number, message.message))
        return super().receive()


def drain(queue: deque[bytes]) -> list[bytes]:
    items = list(queue)
    queue.clear()
    return items


class Edge:
    """One edge, its hub and both ends. The hub's words wait in a queue for each end, as they do on two sockets."""

    def __init__(self, kind: str, capacity: int = 4, ring_bytes: int = 1 << 16) -> None:
        self.kind = kind
        self.capacity = capacity
        self._local = LocalConnector()
        self._hub = Hub(capacity)
        if kind == "shm":
            config = EdgeConfig(source="a", target="b", connector="shm", ring_bytes=ring_bytes)
            self._memory = ShmEdge.create(config)
            weakref.finalize(self, self._memory.close)
        self.to_producer: deque[tuple[str, int, int | None]] = deque()
        self.to_consumer: deque[tuple[str, int, int | None]] = deque()
        self.producer = self._new_producer()
        self.consumer = self._new_consumer()

    def _new_producer(self) -> Producer:
        senders: dict[str, Callable[[], Sender]] = {
            "local": lambda: self._local, "shm": lambda: ShmSender(self._memory), "socket": lambda: self._hub.sender}
        return Producer(senders[self.kind](), self.capacity)

    def _new_consumer(self) -> Consumer:
        receivers: dict[str, Callable[[], Receiver]] = {
            "local": lambda: self._local, "shm": lambda: ShmReceiver(self._memory),
            "socket": lambda: self._hub.receiver}
        return Consumer(Inlets(receivers[self.kind](), self.capacity))

    def lose_producer(self) -> None:
        """Its process is killed; another one comes. On a local edge it is the consumer's, too."""
        if self.kind == "local":
            self._local = LocalConnector()
            self._lose_consumer()
        self._lose_producer()

    def lose_consumer(self) -> None:
        """Its process is killed; another one comes. On a local edge it is the producer's, too."""
        if self.kind == "local":
            self.lose_producer()
        else:
            self._lose_consumer()

    def _lose_producer(self) -> None:
        self._hub.from_talker.clear()
        self._hub.to_talker.clear()
        self.producer = self._new_producer()
        self.to_producer.clear()

    def _lose_consumer(self) -> None:
        filed = self.consumer.filed
        self._hub.to_codec.clear()
        self._hub.from_codec.clear()
        self.consumer = self._new_consumer()
        self.consumer.filed = filed
        self.to_consumer.clear()

    # --- the hub --------------------------------------------------------------------------------------------

    def open(self, session: str = "s", life: int = 1, epoch: int = 0) -> None:
        self._hub.open(session, life, epoch)
        self.to_consumer.append((session, epoch, life))
        self.to_producer.append((session, epoch, life))

    def interrupt(self, epoch: int, session: str = "s") -> None:
        self._hub.interrupt(session, epoch)
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

    def pump(self, *, twice: bool = False) -> None:
        """Let the producer's end send, and what is on the way come to the other end."""
        self.producer.pump(twice=twice)
        self._hub.work()

    def settle(self) -> None:
        """Let everything come that is due."""
        while self.to_consumer:
            self.tell_consumer()
        while self.to_producer:
            self.tell_producer()
        for _ in range(100):
            self.pump()
            self.consumer.receive()
        self.pump()
        self.producer.pump()

    @property
    def filed(self) -> list[Chunk]:
        return [chunk for _, _, chunk in self.consumer.filed]
