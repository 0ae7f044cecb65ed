"""Messages on their way to a client: in order, bounded, and off the media clock."""

from __future__ import annotations

import asyncio
from collections import deque

from aiohttp import web

MAX_CHARS = 512 * 1024
"""Characters that may wait for a client that takes nothing: 8 s of a reply as base64. More ends the call."""


class Outbox:
    """One connection's messages; ``run`` sends them."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self._messages: deque[str] = deque()
        self._chars = 0
        self._news = asyncio.Event()
        self._last = False

    def put(self, message: str) -> bool:
        """Have a message sent; False when too much waits already, and it was dropped."""
        if self._chars + len(message) > MAX_CHARS:
            return False
        self._messages.append(message)
        self._chars += len(message)
        self._news.set()
        return True

    def finish(self) -> None:
        """Let ``run`` return once everything was sent."""
        self._last = True
        self._news.set()

    async def run(self) -> None:
        """Send until ``finish``. Raises ``ConnectionError`` when the client is gone."""
        while True:
            self._news.clear()
            while self._messages:
                message = self._messages.popleft()
                await self._socket.send_str(message)
                self._chars -= len(message)
            if self._last:
                return
            await self._news.wait()
