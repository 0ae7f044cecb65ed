"""Hidden states on their way from vLLM's worker to the runner: frames on a local stream socket.

A collective RPC could fetch them too, but only at the end of a segment or at the price of a round trip a token.
A frame is a header and the rows: each step's leave before the step's tokens do.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np

from duologue.engine.runners.base import Rows

HEADER = struct.Struct("<QIII")
"""Segment's number, first row's position, rows, columns."""


@dataclass(frozen=True, slots=True, eq=False)
class RowsFrame:
    """Hidden states ``rows`` (n, hidden_size) of ``segment``'s positions from ``first`` on."""

    segment: int
    first: int
    rows: Rows

    def encode(self) -> bytes:
        """The frame as bytes."""
        return HEADER.pack(self.segment, self.first, *self.rows.shape) + self.rows.tobytes()


def new_address() -> str:
    """An abstract socket address (unix(7)): unguessable, and gone with the socket."""
    return f"\0duologue-rows-{secrets.token_hex(16)}"


def connect(address: str) -> socket.socket:
    """The worker's end."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(address)
    return sock


async def read(reader: asyncio.StreamReader) -> AsyncIterator[RowsFrame]:
    """Frames, until the worker is gone."""
    while True:
        try:
            header = await reader.readexactly(HEADER.size)
            segment, first, count, columns = HEADER.unpack(header)
            data = await reader.readexactly(count * columns * np.dtype(np.float32).itemsize)
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        yield RowsFrame(segment, first, np.frombuffer(data, np.float32).reshape(count, columns))
