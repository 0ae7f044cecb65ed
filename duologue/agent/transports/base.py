"""The one interface behind which every transport lives.

A transport moves audio and control messages; it decides nothing about a turn. It feeds the caller's audio to
the call as it comes, already repaired and at 16 kHz, and pulls the reply 20 ms at a time on its own media
clock, so that between the playout and the network there is no queue that a flush would have to reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from duologue.agent.realtime.formats import AudioFormat
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


Speak = Callable[[str, str, Pcm], None]
"""Takes samples of a reply and the ids of its response and its item."""


class EventMedia(CallMedia, Protocol):
    """What a call offers a transport that carries the reply among the events, to a client that plays it itself.

    Such a client needs a little audio ahead of its clock, and may send no audio while nobody speaks. What it cannot
    have played yet was not heard.
    """

    @property
    def formats(self) -> tuple[AudioFormat, AudioFormat]:
        """How the client's audio is coded, in and out."""

    @property
    def sounding(self) -> bool:
        """Whether the next 20 ms hold any of a reply."""

    @property
    def silence_due(self) -> int:
        """Samples (16 kHz) of silence that are to be fed at once, unless the caller's own come."""

    @property
    def awaits_time(self) -> bool:
        """Whether a reply is awaited or being written, so that the caller's samples must go on, be they silence."""

    def connected(self, *, voice_in_events: bool = False) -> None:
        """Say that the call may begin; with ``voice_in_events``, that ``speak`` is used in place of ``pull``."""

    def speak(self, ahead: int, out: Speak) -> Pcm:
        """Give the reply's next 20 ms like ``pull``, and what of it belongs to a reply to ``out``.

        ``out`` is called after the events that say that a reply begins and before those that say that it is over.
        ``ahead`` is how many of the samples given before, at ``output_rate``, the client cannot have played yet.
        """


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
