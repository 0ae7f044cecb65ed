"""What the HTTP face needs of whoever holds the calls."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from duologue.agent.speech import Speech
from duologue.agent.transports.base import Telephone


@dataclass(frozen=True, slots=True)
class PartHealth:
    """Whether a part of the server works, and in words what is wrong if it does not."""

    up: bool
    detail: str = ""


Upgrade = Callable[[], Awaitable[tuple[web.WebSocketResponse, Callable[[], None]]]]
"""Makes a WebSocket of an HTTP request; also what drops its connection at once, for clients that take nothing."""


class CallHost(Protocol):
    """Makes and ends calls. All methods are called on the event loop."""

    @property
    def models(self) -> Sequence[str]:
        """Names of the pipelines that calls may ask for; the first serves those that ask for none."""

    async def offer(self, sdp: str, session: Mapping[str, Any] | None, ticket: str | None) -> tuple[str, str]:
        """Answer an offer: the new call's id and the answer SDP.

        ``session`` is the caller's ``session`` object as it was sent (its ``model`` is known here), ``ticket``
        a place in the queue from an earlier refusal. Raises ``BadOffer``, ``NoAddress`` or ``Refused``.
        """

    async def converse(self, upgrade: Upgrade, session: Mapping[str, Any], ticket: str | None) -> None:
        """Hold a call on a WebSocket, from its upgrade to its end.

        ``upgrade`` is called once the call is admitted. Raises ``Refused``, and ``BadSessionError`` for a ``session``
        that makes none; then the socket was not upgraded.
        """

    def speak(self, text: str, voice: str, pace: float, ticket: str | None) -> Speech:
        """Speak a text for somebody who is in no call; ``pace`` 1 is the voice's own.

        Raises ``Refused``, and ``ValueError`` where the pipeline cannot say a text.
        """

    async def hang_up(self, call_id: str) -> bool:
        """End a call and free everything; False if there is none by that id."""

    def telephone(self, call_id: str) -> Telephone | None:
        """Return what can be done with a telephone's call; None for any other. Raises ``KeyError`` for no call."""

    def health(self) -> Mapping[str, PartHealth]:
        """State of every part, by name: each stage, each door, and ``media``."""

    async def drain(self) -> None:
        """Return when the last call has ended; no new one is offered from now on."""

    async def close(self) -> None:
        """End all calls; idempotent."""


class Drain:
    """Whether the server is on its way out: no new calls, live ones may finish."""

    def __init__(self) -> None:
        self.draining = False


HOST: web.AppKey[CallHost] = web.AppKey("host")
DRAIN: web.AppKey[Drain] = web.AppKey("drain", Drain)


def new_call_id(door: str = "rtc") -> str:
    """Return an id nobody can guess: whoever knows it may hang up."""
    return f"{door}_{secrets.token_hex(16)}"
