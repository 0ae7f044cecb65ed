"""Cuts a byte stream into SIP messages (RFC 3261 section 18.3) and keep-alives (RFC 5626 section 4.4.1)."""

from __future__ import annotations

import re

PING = b"\r\n\r\n"
PONG = b"\r\n"

_LENGTH = re.compile(rb"^(?:content-length|l)[ \t]*:[ \t]*(\d{1,9})[ \t]*$", re.IGNORECASE | re.MULTILINE)


class Unframed(ValueError):  # noqa: N818 - the condition
    """The stream cannot be cut any further: the connection must be closed."""


class StreamFramer:
    """Takes bytes as they come and gives whole messages, and ``PING`` for each double CRLF between them."""

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` is the longest message taken, head and body together."""
        self._max = max_bytes
        self._buffer = bytearray()
        self._needed = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return what is complete. Raises ``Unframed`` for a message that is too long or has no Content-Length."""
        self._buffer += data
        found: list[bytes] = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> bytes | None:
        while self._buffer.startswith(b"\r\n"):
            if self._buffer.startswith(PING):
                del self._buffer[:4]
                return PING
            if len(self._buffer) < 4 and PING.startswith(bytes(self._buffer)):
                return None  # the second half of a ping may follow; a lone CRLF before a message is skipped below
            del self._buffer[:2]
        if len(self._buffer) < self._needed:
            return None
        end = self._buffer.find(b"\r\n\r\n", 0, self._max)
        if end < 0:
            if len(self._buffer) >= self._max:
                raise Unframed("a message's header is too long")
            return None
        length = _LENGTH.search(bytes(self._buffer[:end]).replace(b"\r\n", b"\n"))
        if length is None:
            raise Unframed("a message on a stream has no Content-Length")
        self._needed = end + 4 + int(length[1])
        if self._needed > self._max:
            raise Unframed("a message is too long")
        if len(self._buffer) < self._needed:
            return None
        message = bytes(self._buffer[:self._needed])
        del self._buffer[:self._needed]
        self._needed = 0
        return message
