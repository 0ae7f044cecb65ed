"""What is used of aiortc beyond its public interface must be there, under the very names and signatures."""

from __future__ import annotations

import inspect

import pylibsrtp
import pytest
from aioice import Connection
from aioice.ice import StunProtocol
from aiortc import RTCPeerConnection, RTCRtpReceiver
from aiortc.rtcdtlstransport import RTCDtlsTransport, RtpRouter
from aiortc.rtcicetransport import RTCIceTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters, RTCRtpReceiveParameters
from aiortc.rtcrtpreceiver import StreamStatistics

from duologue.agent.transports import webrtc_receiver
from duologue.agent.transports.rtp import RtpPacket, write_rtp
from duologue.agent.transports.webrtc_receiver import MAX_SOURCES, PacketReceiver, install


async def test_the_private_names_of_aiortc_exist() -> None:
    pc = RTCPeerConnection()
    transceiver = pc.addTransceiver("audio")
    receiver = transceiver.receiver
    assert getattr(receiver, webrtc_receiver.RECEIVER_STARTED) is False
    assert getattr(receiver, webrtc_receiver.RECEIVER_RTCP_TASK) is None
    assert getattr(receiver, webrtc_receiver.RECEIVER_STREAMS) == {}
    assert getattr(transceiver, webrtc_receiver.TRANSCEIVER_RECEIVER) is receiver
    assert isinstance(receiver.transport.transport._connection, Connection)
    assert receiver.transport._rx_srtp is None
    assert isinstance(receiver.transport._rtp_router, RtpRouter)
    for owner, name in ((receiver, "_set_rtcp_ssrc"), (receiver, "_run_rtcp"), (transceiver.sender, "_ssrc"),
                        (receiver.transport, "_register_rtp_receiver")):
        assert hasattr(owner, name)
    await pc.close()


def test_aiortc_still_hands_datagrams_over_by_these_names() -> None:
    ours = inspect.signature(PacketReceiver._datagram)
    theirs = inspect.signature(Connection.data_received)
    assert list(ours.parameters) == list(theirs.parameters) == ["self", "data", "component"]
    assert "self.receiver.data_received(data, " in inspect.getsource(StunProtocol.datagram_received)
    assert "self._recv = self._connection.recv" in inspect.getsource(RTCIceTransport)
    assert "self._rx_srtp.unprotect(data)" in inspect.getsource(RTCDtlsTransport)
    assert "__remote_streams" in inspect.getsource(RTCRtpReceiver._run_rtcp)
    assert "__decoder_thread" in inspect.getsource(RTCRtpReceiver.receive)
    assert list(inspect.signature(StreamStatistics).parameters) == ["clockrate"]


class Srtp:
    """Stands in for the decryption: a packet is genuine when it says so."""

    def unprotect(self, data: bytes) -> bytes:
        if not data.endswith(b"+"):
            raise pylibsrtp.Error("auth fail")
        return data[:-1]


class Rig:
    """A receiver without a network, and what comes out of it."""

    def __init__(self) -> None:
        self.taken: list[RtpPacket] = []
        self.passed: list[bytes] = []
        self.faults: list[Exception] = []
        self.broken = False
        self.pc = RTCPeerConnection()
        transceiver = self.pc.addTransceiver("audio")
        transport = transceiver.receiver.transport
        transport._rx_srtp = Srtp()  # type: ignore[assignment]
        self.connection = transport.transport._connection
        self.connection.data_received = self._pass  # type: ignore[method-assign]
        self.receiver = PacketReceiver(transport, self._take, self.faults.append)
        install(self.receiver, transceiver)

    async def start(self) -> None:
        opus = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48000, channels=2, payloadType=111)
        await self.receiver.receive(RTCRtpReceiveParameters(codecs=[opus], muxId="0"))

    def arrives(self, packet: RtpPacket) -> None:
        self.connection.data_received(write_rtp(packet) + b"+", 1)

    def _take(self, packet: RtpPacket) -> None:
        if self.broken:
            raise ValueError("cannot")
        self.taken.append(packet)

    def _pass(self, data: bytes, component: int) -> None:
        self.passed.append(data)


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    await rig.start()
    return rig


def packet(sequence_number: int = 1, ssrc: int = 7, payload_type: int = 111) -> RtpPacket:
    return RtpPacket(payload_type, sequence_number, sequence_number * 960, ssrc, b"opus")


async def test_packets_of_the_codec_are_handed_on_at_once_and_counted(rig: Rig) -> None:
    rig.arrives(packet(3))
    rig.arrives(packet(2))
    assert rig.taken == [packet(3), packet(2)]
    stats = await rig.receiver.getStats()
    inbound = next(entry for entry in stats.values() if entry.type == "inbound-rtp")
    assert inbound.packetsReceived == 2
    await rig.receiver.stop()


async def test_what_is_not_rtp_goes_the_usual_way(rig: Rig) -> None:
    datagrams = [b"\x16\xfe\xfd handshake", bytes.fromhex("80c80006") + b"report", bytes.fromhex("81cd0003"), b"x", b""]
    for data in datagrams:
        rig.connection.data_received(data, 1)
    assert rig.passed == datagrams
    assert rig.taken == []
    assert rig.receiver.heard == len(datagrams)
    await rig.receiver.stop()


async def test_forged_and_damaged_packets_are_dropped(rig: Rig) -> None:
    rig.connection.data_received(write_rtp(packet()) + b"-", 1)
    rig.connection.data_received(b"\x9f\x6f\x00+", 1)
    assert rig.taken == []
    assert rig.faults == []
    await rig.receiver.stop()


async def test_packets_of_another_payload_type_are_dropped(rig: Rig) -> None:
    rig.arrives(packet(payload_type=13))
    assert rig.taken == []
    await rig.receiver.stop()


async def test_a_peer_cannot_grow_the_reports_by_inventing_sources(rig: Rig) -> None:
    for ssrc in range(100):
        rig.arrives(packet(ssrc=ssrc))
    assert len(rig.taken) == MAX_SOURCES
    await rig.receiver.stop()


async def test_a_fault_behind_the_receiver_does_not_reach_the_socket(rig: Rig) -> None:
    rig.broken = True
    rig.arrives(packet())
    assert len(rig.faults) == 1
    await rig.receiver.stop()
