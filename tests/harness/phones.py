"""Many telephones in one process: our own user agent, and RTP from ready payloads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack

from duologue.agent.media.g711 import G711
from duologue.agent.media.resample import Resampler
from duologue.agent.transports.rtp import RtpPacket, read_rtp, write_rtp
from duologue.agent.transports.sip.calls import Ended, SipCall
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.media.negotiation import Address, Agreement, CodecName, LocalMedia, Negotiator
from duologue.agent.transports.sip.media.udp_ports import PortPair
from duologue.agent.transports.sip.user_agent import UserAgent
from duologue.engine import INPUT_RATE, Pcm
from tests.agent.transports.peer import encoded
from tests.harness.severed import Line, udp_relay

HOST = "127.0.0.1"


def packets_of(codec: CodecName, pcm: Pcm) -> list[bytes]:
    """Payloads of 20 ms of sound at 16 kHz."""
    if codec == "opus":
        return encoded(pcm)
    law, narrow = G711("mu"), Resampler(INPUT_RATE, 8000).process(pcm)
    return [law.encode(narrow[at:at + 160]) for at in range(0, narrow.size - 159, 160)]


class Phone:
    """One caller; ``got`` is what came back, in the order in which it did."""

    def __init__(self, codec: CodecName, payloads: Sequence[bytes]) -> None:
        self.got: list[RtpPacket] = []
        self.over = asyncio.Event()
        self._payloads = payloads
        self._ports = PortPair(HOST, (40_000, 49_999))
        self._negotiator = Negotiator(LocalMedia(HOST, self._ports.port, (codec,)))
        self._agreed: asyncio.Future[Agreement] = asyncio.get_running_loop().create_future()
        self._network = ExitStack()

    async def call(self, agent: UserAgent, target: str, line: Line | None = None) -> None:
        """Dial, and talk in a task of its own from the answer on; the voice goes through ``line``, if there is one."""
        self._call = agent.dial(target, self._negotiator.offer(), self)
        agreement = await self._agreed
        to = agreement.peer.address
        assert to is not None
        if line is not None:
            to = self._network.enter_context(udp_relay(line, to))
        self._ports.open(self._take, lambda data, source: None)
        self._talking = asyncio.ensure_future(self._talk(agreement, to))

    async def said_all(self) -> None:
        """Wait until the last payload has been sent."""
        await self._talking

    def hang_up(self) -> None:
        """End the call and give the ports back."""
        self._talking.cancel()
        self._call.hang_up()
        self._ports.close()
        self._network.close()

    async def _talk(self, agreement: Agreement, to: Address) -> None:
        loop = asyncio.get_running_loop()
        step, start = agreement.codec.clock // 50, loop.time()
        for number, payload in enumerate(self._payloads):
            await asyncio.sleep(start + 0.02 * number - loop.time())
            self._ports.send(write_rtp(RtpPacket(agreement.send_type, number & 0xFFFF, number * step, 7, payload)), to)

    def _take(self, data: bytes, source: Address) -> None:
        self.got.append(read_rtp(data))

    async def on_offer(self, sdp: str) -> str:
        """Nobody offers anything anew."""
        raise NotImplementedError

    def on_answered(self, sdp: str) -> None:
        """The echo has answered."""
        self._agreed.set_result(self._negotiator.accept(sdp))

    def on_digits(self, digits: str) -> None:
        """An echo presses nothing."""

    def on_ended(self, ended: Ended) -> None:
        """The call is over."""
        self.over.set()
        if not self._agreed.done():
            self._agreed.set_exception(ConnectionError(f"the echo did not answer: {ended}"))


async def caller() -> UserAgent:
    """One user agent for all phones of a process."""
    async def nobody_home(call: SipCall) -> None:
        call.refuse(480)

    agent = UserAgent(SipConfig.model_validate({"listen": [{"port": 0}]}), nobody_home)
    await agent.start()
    return agent
