"""The one interface behind which every transport lives.

A transport moves audio and control messages; it decides nothing about a turn. It feeds the caller's audio to
the call as it comes, already repaired and at 16 kHz, and pulls the reply 20 ms at a time on its own media
clock, so that between the playout and the network there is no queue that a flush would have to reach.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from duologue.engine import Pcm

FRAME_MS = 20
"""Length of one frame in both directions, in milliseconds (the ptime browsers and telephones use)."""


class CallMedia(Protocol):
    """What a call offers its transport. All methods are synchronous and are called on the event loop."""

    @property
    def output_rate(self) -> int:
        """Sample rate, in Hz, of what ``pull`` returns."""

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Take the caller's next samples: 16 kHz mono, any length; ``concealed`` of them were made up."""

    def pull(self) -> Pcm:
        """Give the reply's next 20 ms at ``output_rate``; silence when there is nothing to say."""

    def receive(self, message: str) -> None:
        """Take one message (JSON text) from the caller's control channel."""

    def dtmf(self, key: str) -> None:
        """Take one key (``0-9*#A-D``) that the caller pressed on a telephone."""

    def connected(self) -> None:
        """Say that media and control channel are up: the call may begin."""

    def gone(self, reason: str) -> None:
        """Say that the caller hung up or was lost; idempotent."""


class Transport(Protocol):
    """What a transport offers its call."""

    @property
    def name(self) -> str:
        """Name for metrics and logs: ``webrtc``, ``livekit``, ``sip``, ``websocket``."""

    def send(self, message: str) -> None:
        """Send one message (JSON text) on the control channel; never blocks, dropped when there is none."""

    async def close(self) -> None:
        """End the connection and free everything; idempotent."""


class TransferFailed(RuntimeError):  # noqa: N818 - what happened
    """The target of a transfer was not reached, and the call goes on; the text says what was told."""


@runtime_checkable
class Telephone(Protocol):
    """What a telephone's transport offers besides."""

    def press(self, keys: str) -> None:
        """Press keys (``0-9*#A-D``) at the other end. Raises ``ValueError``, saying why they cannot be sent."""

    async def transfer(self, target: str) -> None:
        """Have the other end call ``target`` (a ``sip:`` or ``tel:`` URI) instead, and hang up once it does.

        Raises ``ValueError`` for a target that cannot be called, ``TransferFailed`` otherwise.
        """
