"""A SIP door without an engine behind it: whoever calls meets a recording call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from duologue.agent.call import Call
from duologue.agent.switchboard import MakeTransport
from duologue.agent.transports.base import CallMedia, EventMedia
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.door import SipDoor
from duologue.agent.transports.sip.transport import SipTransport
from duologue.engine import Refused
from tests.agent.transports.peer import Recorder, RecordingCall
from tests.harness.server import free_port


class House(Recorder):
    """Makes calls of whoever comes; ``refuse`` is raised instead, if set."""

    def __init__(self, make: Callable[[], CallMedia]) -> None:
        super().__init__()
        self.port = free_port()
        self.calls: list[tuple[SipTransport, CallMedia]] = []
        self.refuse: Refused | None = None
        self.has_room = True
        self.asked: list[str | None] = []
        self._make = make

    async def take(self, call_id: str, make_transport: MakeTransport, *, wishes: Mapping[str, Any] | None = None,
                   ticket: str | None = None) -> Call:
        self.asked.append(ticket)
        if self.refuse is not None:
            self.changed()
            raise self.refuse
        media = self._make()
        transport = await make_transport(cast(EventMedia, media))  # a telephone's door asks for no more than CallMedia
        assert isinstance(transport, SipTransport)
        self.calls.append((transport, media))
        self.changed()
        return cast(Call, media)  # a door only hands it on

    @property
    def transport(self) -> SipTransport:
        """The newest call's."""
        return self.calls[-1][0]

    @property
    def call(self) -> RecordingCall:
        """The newest."""
        call = self.calls[-1][1]
        assert isinstance(call, RecordingCall)
        return call


@asynccontextmanager
async def house(make: Callable[[], CallMedia] = RecordingCall, *, users: bool = False,
                **media: object) -> AsyncIterator[tuple[House, SipDoor]]:
    """Open a door on loopback; ``media`` overrides its config's section of that name."""
    made = House(make)
    config = SipConfig.model_validate({
        "listen": [{"port": made.port}], "users": [{"name": "alice", "password": "sesame"}] if users else [],
        "media": {"ports": (25_000, 29_999), **media}})
    door = SipDoor(config, made)
    await door.open()
    try:
        yield made, door
    finally:
        await asyncio.gather(*(transport.close() for transport, _ in made.calls))
        await door.close()
