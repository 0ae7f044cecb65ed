"""The ``oai-events`` data channel: JSON text both ways, bounded both before and after it opens."""

from __future__ import annotations

from collections import deque
from typing import Final

from aiortc import RTCDataChannel
from aiortc.exceptions import InvalidStateError

from duologue.metrics import DROPS

LABEL: Final = "oai-events"
"""Name that OpenAI's Realtime clients give the channel."""

MAX_WAITING = 256
"""Messages kept until the channel opens; the newest is dropped."""

MAX_BUFFERED = 1 << 20
"""Bytes the channel may hold unsent: a peer that takes nothing must not grow the server."""


class ControlChannel:
    """Sends on a data channel that the peer opens some time, or never."""

    def __init__(self, *, expected: bool) -> None:
        """``expected`` says whether the peer offered data channels; without, every message is dropped."""
        self._expected = expected
        self._channel: RTCDataChannel | None = None
        self._waiting: deque[str] = deque()

    @property
    def is_open(self) -> bool:
        """Whether the peer has opened the channel."""
        return self._channel is not None

    def attach(self, channel: RTCDataChannel) -> None:
        """Take the channel the peer opened, and send what waited for it."""
        self._channel = channel
        while self._waiting:
            self._put(channel, self._waiting.popleft())

    def send(self, message: str) -> None:
        """Send or keep ``message``; never blocks."""
        if self._channel is not None:
            self._put(self._channel, message)
        elif not self._expected:
            DROPS.labels(what="event", reason="no_channel").inc()
        elif len(self._waiting) >= MAX_WAITING:
            DROPS.labels(what="event", reason="channel_not_open").inc()
        else:
            self._waiting.append(message)

    def _put(self, channel: RTCDataChannel, message: str) -> None:
        if channel.bufferedAmount > MAX_BUFFERED:
            DROPS.labels(what="event", reason="backlog").inc()
            return
        try:
            channel.send(message)
        except InvalidStateError:
            DROPS.labels(what="event", reason="channel_closed").inc()
        except ValueError:  # longer than the peer's a=max-message-size
            DROPS.labels(what="event", reason="too_long").inc()
