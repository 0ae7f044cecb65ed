"""What the hub and its workers say to each other, and how it is framed on their socket.

Both ends are one program, so messages are pickled dataclasses. Audio and frames travel as out-of-band buffers
(pickle protocol 5, PEP 574) and are not copied into the pickle. Frame: u32 number of parts, a u32 length for
each part, the parts; the first part is the pickle, the others its buffers in order.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass

from duologue.engine.messages import CodecFrames, ReplyAudio, ReplyText, StageInput, StageOutput

READ_BYTES = 1 << 18
"""Read at once from a socket, at most."""

_U32 = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Setup:
    """Hub to worker, first: the pipeline (JSON of its config) and the stages this worker holds."""

    pipeline: str
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """Worker to hub: every stage is loaded."""


@dataclass(frozen=True, slots=True)
class CannotStart:
    """Worker to hub: a stage cannot be loaded, and what to do about it."""

    message: str


@dataclass(frozen=True, slots=True)
class ToStage:
    """Hub to worker: a message for one stage.

    ``serial`` names one life of the session in the stage, from one ``Open`` to the next.
    """

    stage: str
    serial: int
    message: StageInput


@dataclass(frozen=True, slots=True)
class FromStage:
    """Worker to hub: an output of the life ``serial`` of its session in the stage."""

    stage: str
    serial: int
    message: StageOutput


@dataclass(frozen=True, slots=True)
class Taken:
    """Worker to hub: the stage has filed ``count`` messages that came over its incoming edge."""

    stage: str
    serial: int
    session: str
    count: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Worker to hub: messages that were dropped there, for the metrics."""

    what: str
    reason: str
    count: int


ToWorker = Setup | ToStage
ToHub = Ready | CannotStart | FromStage | Taken | Dropped


def encode(message: ToWorker | ToHub) -> bytes:
    """Frame one message."""
    buffers: list[pickle.PickleBuffer] = []
    parts: list[bytes | memoryview] = [pickle.dumps(message, protocol=5, buffer_callback=buffers.append)]
    parts += [buffer.raw() for buffer in buffers]
    head = b"".join(_U32.pack(n) for n in (len(parts), *(len(part) for part in parts)))
    return head + b"".join(parts)


class Decoder:
    """Cuts a byte stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[ToWorker | ToHub]:
        """Take bytes as they came; returns the messages that are whole now."""
        self._buffer += data
        messages = []
        used = 0
        while (frame := self._frame_at(used)) is not None:
            message, used = frame
            messages.append(message)
        del self._buffer[:used]
        return messages

    def _frame_at(self, at: int) -> tuple[ToWorker | ToHub, int] | None:
        if len(self._buffer) < at + 4:
            return None
        (count,) = _U32.unpack_from(self._buffer, at)
        at += 4
        if len(self._buffer) < at + 4 * count:
            return None
        lengths = struct.unpack_from(f"<{count}I", self._buffer, at)
        at += 4 * count
        if len(self._buffer) < at + sum(lengths):
            return None
        parts = []
        for length in lengths:
            parts.append(self._buffer[at:at + length])
            at += length
        return pickle.loads(parts[0], buffers=parts[1:]), at


def session_of(message: StageInput | StageOutput) -> str:
    """The session a message is about."""
    if isinstance(message, ReplyText | CodecFrames | ReplyAudio):
        return message.fence.session
    return message.session
