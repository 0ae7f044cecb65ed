"""OpenAI's Realtime API over a WebSocket: ``GET /v1/realtime``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aiohttp import web

from duologue.agent.http.admission import check_model, check_open, say_refused, ticket_of
from duologue.agent.http.errors import ApiError
from duologue.agent.http.host import HOST
from duologue.agent.transports.websocket.transport import HEARTBEAT_S, MAX_MESSAGE
from duologue.engine import Refused

REALTIME = "/v1/realtime"

SUBPROTOCOL = "realtime"
"""What browsers' clients offer beside their key; a browser refuses a server that selects none of what it offered."""


async def converse(request: web.Request) -> web.StreamResponse:
    """``WS /v1/realtime?model=M``: a call; ``duplex=1`` asks for our own events.

    Refusals are HTTP answers to the upgrade, the same as for ``POST /v1/realtime/calls``.
    """
    check_open(request)
    # Base64 of sound does not compress.
    socket = web.WebSocketResponse(protocols=(SUBPROTOCOL,), heartbeat=HEARTBEAT_S, compress=False,
                                   max_msg_size=MAX_MESSAGE)
    if not socket.can_prepare(request):
        raise ApiError(426, "upgrade_required", f"{REALTIME} is a WebSocket: ask for an upgrade",
                       headers={"Upgrade": "websocket"})
    host = request.app[HOST]
    check_model(request.query.get("model"), "model", host.models)
    wishes: dict[str, Any] = {"duologue": {"events": True}} if request.query.get("duplex") == "1" else {}

    async def upgrade() -> tuple[web.WebSocketResponse, Callable[[], None]]:
        await socket.prepare(request)
        return socket, drop

    def drop() -> None:
        if request.transport is not None:
            request.transport.abort()

    try:
        await host.converse(upgrade, wishes, ticket_of(request))
    except Refused as refused:
        raise say_refused(refused) from refused
    return socket


def add_routes(app: web.Application) -> None:
    """Add this module's routes."""
    app.router.add_get(REALTIME, converse)
