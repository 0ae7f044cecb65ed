"""Telephones for measuring: an echo behind the product's own SIP door, and many callers with ready packets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from benchmarks.echo_server import EchoMedia
from duologue.agent.call import Call
from duologue.agent.media.g711 import G711
from duologue.agent.media.resample import Resampler
from duologue.agent.switchboard import MakeTransport
from duologue.agent.transports.rtp import RtpPacket, write_rtp
from duologue.agent.transports.sip.calls import Ended, SipCall
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.door import SipDoor
from duologue.agent.transports.sip.media.negotiation import Address, Agreement, CodecName, LocalMedia, Negotiator
from duologue.agent.transports.sip.media.udp_ports import PortPair
from duologue.agent.transports.sip.transport import SipTransport
from duologue.agent.transports.sip.user_agent import UserAgent
from duologue.engine import INPUT_RATE, Pcm
from tests.agent.transports.peer import encoded
from tests.harness.server import free_port

_HOST = "127.0.0.1"


class EchoBoard:
    """Takes every call, and says what it hears."""

    has_room = True

    def __init__(self) -> None:
        self._kept: list[SipTransport] = []

    async def take(self, call_id: str, make_transport: MakeTransport, *, wishes: Mapping[str, Any] | None = None,
                   ticket: str | None = None) -> Call:
        """Make an echo where a call would be."""
        media = EchoMedia()
        transport = await make_transport(media)
        assert isinstance(transport, SipTransport)
        self._kept.append(transport)
        return cast(Call, media)  # a door only hands it on


async def open_echo() -> int:
    """Open a SIP door with an echo behind it; returns its UDP port."""
    port = free_port()
    await SipDoor(SipConfig.model_validate({"listen": [{"port": port}]}), EchoBoard()).open()
    return port


def packets_of(codec: CodecName, pcm: Pcm) -> list[bytes]:
    """Payloads of 20 ms of sound at 16 kHz."""
    if codec == "opus":
        return encoded(pcm)
    law, narrow = G711("mu"), Resampler(INPUT_RATE, 8000).process(pcm)
    return [law.encode(narrow[at:at + 160]) for at in range(0, narrow.size - 159, 160)]


class Phone:
    """One caller; ``got`` counts the packets that came back."""

    def __init__(self, codec: CodecName, payloads: Sequence[bytes]) -> None:
        self.got = 0
        self._payloads = payloads
        self._ports = PortPair(_HOST, (40_000, 49_999))
        self._negotiator = Negotiator(LocalMedia(_HOST, self._ports.port, (codec,)))
        self._agreed: asyncio.Future[Agreement] = asyncio.get_running_loop().create_future()

    async def call(self, agent: UserAgent, target: str) -> None:
        """Dial, and talk in a task of its own from the answer on."""
        agent.dial(target, self._negotiator.offer(), self)
        agreement = await self._agreed
        self._ports.open(self._count, lambda data, source: None)
        self._talking = asyncio.ensure_future(self._talk(agreement))

    async def _talk(self, agreement: Agreement) -> None:
        loop = asyncio.get_running_loop()
        to, step, start = agreement.peer.address, agreement.codec.clock // 50, loop.time()
        assert to is not None
        for number, payload in enumerate(self._payloads):
            await asyncio.sleep(start + 0.02 * number - loop.time())
            self._ports.send(write_rtp(RtpPacket(agreement.send_type, number & 0xFFFF, number * step, 7, payload)), to)

    def _count(self, data: bytes, source: Address) -> None:
        self.got += 1

    async def on_offer(self, sdp: str) -> str:
        """Nobody offers anything anew."""
        raise NotImplementedError

    def on_answered(self, sdp: str) -> None:
        """The echo has answered."""
        self._agreed.set_result(self._negotiator.accept(sdp))

    def on_digits(self, digits: str) -> None:
        """An echo presses nothing."""

    def on_ended(self, ended: Ended) -> None:
        """It should not end."""
        if not self._agreed.done():
            self._agreed.set_exception(ConnectionError(f"the echo did not answer: {ended}"))


async def caller() -> UserAgent:
    """One user agent for all phones of a process."""
    async def nobody_home(call: SipCall) -> None:
        call.refuse(480)

    agent = UserAgent(SipConfig.model_validate({"listen": [{"port": 0}]}), nobody_home)
    await agent.start()
    return agent
