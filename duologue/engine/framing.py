"""One message as bytes, between processes of one program.

Messages are pickled dataclasses. Their arrays travel as out-of-band buffers (pickle protocol 5, PEP 574) and are not
copied into the pickle. Layout: u32 number of parts, a u32 length for each part, the parts; the first is the pickle,
the others its buffers in order. The head and each part end at a multiple of ``ALIGN`` bytes, so that arrays lie where
vector instructions like them.
"""

from __future__ import annotations

import pickle
import struct
from typing import Any

ALIGN = 16

_U32 = struct.Struct("<I")


def pack(message: object) -> list[bytes | memoryview]:
    """The bytes of ``message``, in pieces; arrays by reference."""
    buffers: list[pickle.PickleBuffer] = []
    parts: list[bytes | memoryview] = [pickle.dumps(message, protocol=5, buffer_callback=buffers.append)]
    parts += [buffer.raw() for buffer in buffers]
    head = b"".join(_U32.pack(n) for n in (len(parts), *(len(part) for part in parts)))
    pieces: list[bytes | memoryview] = []
    for piece in (head, *parts):
        pieces += (piece, bytes(-len(piece) % ALIGN))
    return pieces


def unpack(data: memoryview) -> Any:
    """The message that ``data`` is the bytes of; its arrays are views of ``data``, writable if that is."""
    (count,) = _U32.unpack_from(data)
    lengths = struct.unpack_from(f"<{count}I", data, _U32.size)
    at = _padded(_U32.size * (count + 1))
    parts = []
    for length in lengths:
        parts.append(data[at:at + length])
        at += _padded(length)
    return pickle.loads(parts[0], buffers=parts[1:])


def size_at(data: bytearray, at: int) -> int | None:
    """Length in bytes of the message that begins at ``at``; None when too little of it is there to tell."""
    if len(data) < at + _U32.size:
        return None
    (count,) = _U32.unpack_from(data, at)
    head = _U32.size * (count + 1)
    if len(data) < at + head:
        return None
    return _padded(head) + sum(map(_padded, struct.unpack_from(f"<{count}I", data, at + _U32.size)))


def _padded(length: int) -> int:
    return -(-length // ALIGN) * ALIGN
