"""What the hub and its workers say to each other, over a socket for each worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duologue.engine.connectors import Filed, ShmEdge
from duologue.engine.framing import pack, size_at, unpack
from duologue.engine.messages import CodecFrames, ReplyAudio, ReplyText, StageInput, StageOutput
from duologue.engine.stage import KvBudget

READ_BYTES = 1 << 18
"""Read at once from a socket, at most."""


@dataclass(frozen=True, slots=True)
class Setup:
    """Hub to worker, first: the pipeline (JSON of its config), and the stages and ends of edges this worker holds."""

    pipeline: str
    stages: tuple[str, ...]
    edges: tuple[ShmEdge, ...] = ()


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker to hub: every stage is loaded; ``kv`` is what those that hold KV have of it."""

    kv: Mapping[str, KvBudget]


@dataclass(frozen=True, slots=True)
class CannotStart:
    """Worker to hub: a stage cannot be loaded, and what to do about it."""

    message: str


@dataclass(frozen=True, slots=True)
class Ping:
    """Hub to worker: say that you live."""


@dataclass(frozen=True, slots=True)
class Pong:
    """Worker to hub: the answer to ``Ping``, given between two steps."""


@dataclass(frozen=True, slots=True)
class ToStage:
    """Hub to worker: a message for one stage.

    ``serial`` names one life of the session in the stage, from one ``Open`` to the next. Text and codec frames have
    crossed the edge before the stage, and ``number`` counts them in that life; but text for a stage that writes text
    itself is for the direct edge after it. ``Filed`` is of the codec frames that the stage made.
    """

    stage: str
    serial: int
    message: StageInput | Filed
    number: int = 0


@dataclass(frozen=True, slots=True)
class FromStage:
    """Worker to hub: an output of the life ``serial`` of its session in the stage."""

    stage: str
    serial: int
    message: StageOutput


@dataclass(frozen=True, slots=True)
class Taken:
    """Worker to hub: in this life ``count`` of the session's messages for the stage need no room any more, in all."""

    stage: str
    serial: int
    session: str
    count: int


@dataclass(frozen=True, slots=True)
class Counted:
    """Worker to hub: what was counted there; ``counter`` is one of ``metrics.IN_STAGES``."""

    counter: str
    labels: tuple[tuple[str, str], ...]
    count: int


ToWorker = Setup | ToStage | Ping
ToHub = Ready | CannotStart | Pong | FromStage | Taken | Counted


def encode(message: ToWorker | ToHub) -> bytes:
    """Frame one message."""
    return b"".join(pack(message))


class Decoder:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[ToWorker | ToHub]:
        """Take bytes as they came; returns the messages that are whole now."""
        self._buffer += data
        messages = []
        used = 0
        while (size := size_at(self._buffer, used)) is not None and used + size <= len(self._buffer):
            messages.append(unpack(memoryview(self._buffer[used:used + size])))
            used += size
        del self._buffer[:used]
        return messages


def session_of(message: StageInput | StageOutput | Filed) -> str:
    """The session a message is about."""
    if isinstance(message, ReplyText | CodecFrames | ReplyAudio):
        return message.fence.session
    return message.session
