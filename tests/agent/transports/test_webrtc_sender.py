from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import numpy as np
from aiortc import RTCPeerConnection
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtp import RtcpReceiverInfo, RtcpRrPacket

from duologue.agent.media.expected_loss import ExpectedLoss
from duologue.agent.media.opus import has_fec
from duologue.agent.transports import webrtc_sender
from duologue.agent.transports.rtp import RtpPacket, read_rtp
from duologue.agent.transports.webrtc_sender import ReplySender, install
from duologue.engine import Pcm
from tests.agent.transports.peer import FRAME, RATE, Recorder, frames_of, voiced

OPUS = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48000, channels=2, payloadType=111)


class Wire(Recorder):
    """A sender without a network: what it sends is kept."""

    def __init__(self, pull: Callable[[], Pcm]) -> None:
        super().__init__()
        self.pc = RTCPeerConnection()
        self.transceiver = self.pc.addTransceiver("audio")
        self.packets: list[RtpPacket] = []
        self.faults: list[Exception] = []
        transport = self.transceiver.receiver.transport
        transport._send_rtp = self._send  # type: ignore[method-assign]
        self.sender = ReplySender(transport, pull, RATE, self._fault)
        self.down = False

    async def _send(self, data: bytes) -> None:
        if self.down:
            raise ConnectionError("not connected")
        self.packets.append(read_rtp(data))
        self.changed()

    def _fault(self, fault: Exception) -> None:
        self.faults.append(fault)
        self.changed()


@asynccontextmanager
async def sending(pull: Callable[[], Pcm]) -> AsyncIterator[Wire]:
    wire = Wire(pull)
    running = asyncio.ensure_future(wire.sender._run_rtp(OPUS))
    try:
        yield wire
    finally:
        running.cancel()
        await running
        await wire.pc.close()


def silence() -> Pcm:
    return np.zeros(FRAME, np.int16)


async def test_the_private_names_of_aiortc_exist() -> None:
    pc = RTCPeerConnection()
    transceiver = pc.addTransceiver("audio")
    sender = transceiver.sender
    assert not getattr(sender, webrtc_sender.SENDER_RTP_STARTED).is_set()
    assert not getattr(sender, webrtc_sender.SENDER_RTP_EXITED).is_set()
    for name in (webrtc_sender.SENDER_NTP_TIME, webrtc_sender.SENDER_RTP_TIME, webrtc_sender.SENDER_OCTETS,
                 webrtc_sender.SENDER_PACKETS):
        assert getattr(sender, name) == 0
    assert getattr(transceiver, webrtc_sender.TRANSCEIVER_SENDER) is sender
    assert asyncio.iscoroutinefunction(sender._run_rtp)
    assert asyncio.iscoroutinefunction(sender._handle_rtcp_packet)
    assert asyncio.iscoroutinefunction(sender.transport._send_rtp)
    ours = ReplySender(sender.transport, silence, RATE, print)
    install(ours, transceiver)
    assert transceiver.sender is ours
    await pc.close()


def test_expected_loss_rises_at_once_and_falls_by_halves() -> None:
    loss = ExpectedLoss()
    assert [loss.reported(report) for report in (0, 26, 0, 0, 0, 0)] == [0, 10, 5, 2, 1, 0]
    assert loss.reported(255) == 50


async def test_each_packet_is_one_pull_with_the_next_sequence_number() -> None:
    pulls = 0

    def pull() -> Pcm:
        nonlocal pulls
        pulls += 1
        return silence()

    async with sending(pull) as wire:
        await wire.until(lambda: len(wire.packets) == 5)
        assert pulls == 5
    first = wire.packets[0]
    for place, packet in enumerate(wire.packets):
        assert (packet.sequence_number - first.sequence_number) & 0xFFFF == place
        assert (packet.timestamp - first.timestamp) % 960 == 0
        assert (packet.payload_type, packet.ssrc) == (111, wire.sender._ssrc)


async def test_sender_reports_say_what_was_sent() -> None:
    async with sending(silence) as wire:
        await wire.until(lambda: len(wire.packets) == 12)
        stats = await wire.sender.getStats()
        outbound = next(entry for entry in stats.values() if entry.type == "outbound-rtp")
        assert outbound.packetsSent == 11
        assert outbound.bytesSent == sum(len(packet.payload) for packet in wire.packets[:11])


async def test_a_failing_pull_ends_the_sending_and_is_told_once() -> None:
    async with sending(lambda: np.zeros(FRAME + 1, np.int16)) as wire:
        await wire.until(lambda: bool(wire.faults))
        await asyncio.sleep(0.05)
        assert len(wire.faults) == 1
        assert wire.packets == []


async def test_a_connection_that_goes_down_is_no_fault() -> None:
    pulls = 0

    def pull() -> Pcm:
        nonlocal pulls
        pulls += 1
        wire.down = pulls == 3
        return silence()

    async with sending(pull) as wire:
        await wire.until(lambda: len(wire.packets) == 2)
        await asyncio.sleep(0.1)
        assert pulls == 3
        assert wire.faults == []


async def test_a_silenced_sender_pulls_no_more() -> None:
    pulls = 0

    def pull() -> Pcm:
        nonlocal pulls
        pulls += 1
        return silence()

    async with sending(pull) as wire:
        await wire.until(lambda: len(wire.packets) == 1)
        wire.sender.silence()
        await asyncio.sleep(0.1)
        assert pulls == 1


async def test_the_encoder_protects_the_reply_once_the_peer_reports_loss() -> None:
    frames = frames_of(voiced(3.0))
    async with sending(lambda: frames.pop(0)) as wire:

        async def next_packets(count: int) -> list[RtpPacket]:
            start = len(wire.packets)
            await wire.until(lambda: len(wire.packets) >= start + count)
            return wire.packets[start:]

        async def report(fraction_lost: int) -> None:
            info = RtcpReceiverInfo(ssrc=wire.sender._ssrc, fraction_lost=fraction_lost, packets_lost=0,
                                    highest_sequence=0, jitter=0, lsr=1, dlsr=0)
            await wire.sender._handle_rtcp_packet(RtcpRrPacket(ssrc=1, reports=[info]))

        await report(0)
        await next_packets(1)  # still has a copy of the frame before
        assert not any(has_fec(packet.payload) for packet in await next_packets(10))
        await report(40)
        assert any(has_fec(packet.payload) for packet in await next_packets(12))
