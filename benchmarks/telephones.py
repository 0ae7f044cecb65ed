"""An echo behind the product's own SIP door, for measuring."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from duologue.agent.call import Call
from duologue.agent.switchboard import MakeTransport
from duologue.agent.transports.base import EventMedia
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.door import SipDoor
from duologue.agent.transports.sip.transport import SipTransport
from tests.harness.echo_media import EchoMedia
from tests.harness.server import free_port


class EchoBoard:
    """Takes every call, and says what it hears."""

    has_room = True

    def __init__(self) -> None:
        self._kept: list[SipTransport] = []

    async def take(self, call_id: str, make_transport: MakeTransport, *, wishes: Mapping[str, Any] | None = None,
                   ticket: str | None = None) -> Call:
        """Make an echo where a call would be."""
        media = EchoMedia()
        transport = await make_transport(cast(EventMedia, media))  # a telephone's door asks for no more than CallMedia
        assert isinstance(transport, SipTransport)
        self._kept.append(transport)
        return cast(Call, media)  # a door only hands it on


async def open_echo() -> int:
    """Open a SIP door with an echo behind it; returns its UDP port."""
    port = free_port()
    await SipDoor(SipConfig.model_validate({"listen": [{"port": port}]}), EchoBoard()).open()
    return port
