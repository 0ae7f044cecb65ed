"""What is used of aiortc beyond its public interface must be there, under the very names and signatures."""

from __future__ import annotations

import inspect

import pytest
from aiortc import RTCPeerConnection, RTCRtpReceiver
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters, RTCRtpReceiveParameters
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtp import RtpPacket

from duologue.agent.transports import webrtc_receiver
from duologue.agent.transports.webrtc_receiver import MAX_SOURCES, PacketReceiver, install


async def test_the_private_names_of_aiortc_exist() -> None:
    pc = RTCPeerConnection()
    transceiver = pc.addTransceiver("audio")
    receiver = transceiver.receiver
    assert getattr(receiver, webrtc_receiver.RECEIVER_STARTED) is False
    assert getattr(receiver, webrtc_receiver.RECEIVER_RTCP_TASK) is None
    assert getattr(receiver, webrtc_receiver.RECEIVER_STREAMS) == {}
    assert getattr(transceiver, webrtc_receiver.TRANSCEIVER_RECEIVER) is receiver
    assert getattr(receiver.transport, webrtc_receiver.DTLS_RECEIVED) == 0
    for owner, name in ((receiver, "_set_rtcp_ssrc"), (receiver, "_run_rtcp"), (transceiver.sender, "_ssrc"),
                        (receiver.transport, "_register_rtp_receiver")):
        assert hasattr(owner, name)
    await pc.close()


def test_aiortc_still_hands_packets_over_by_these_names() -> None:
    ours = inspect.signature(PacketReceiver._handle_rtp_packet)
    theirs = inspect.signature(RTCRtpReceiver._handle_rtp_packet)
    assert list(ours.parameters) == list(theirs.parameters) == ["self", "packet", "arrival_time_ms"]
    assert "._handle_rtp_packet(packet, arrival_time_ms=" in inspect.getsource(RTCDtlsTransport)
    assert "__remote_streams" in inspect.getsource(RTCRtpReceiver._run_rtcp)
    assert "__decoder_thread" in inspect.getsource(RTCRtpReceiver.receive)
    assert list(inspect.signature(StreamStatistics).parameters) == ["clockrate"]


class Sink:
    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int, bytes]] = []
        self.faults: list[Exception] = []
        self.broken = False

    def take(self, ssrc: int, sequence_number: int, timestamp: int, payload: bytes) -> None:
        if self.broken:
            raise ValueError("cannot")
        self.taken.append((ssrc, sequence_number, timestamp, payload))


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
async def receiver(sink: Sink) -> PacketReceiver:
    pc = RTCPeerConnection()
    transceiver = pc.addTransceiver("audio")
    receiver = PacketReceiver(transceiver.receiver.transport, sink.take, sink.faults.append)
    install(receiver, transceiver)
    opus = RTCRtpCodecParameters(mimeType="audio/opus", clockRate=48000, channels=2, payloadType=111)
    await receiver.receive(RTCRtpReceiveParameters(codecs=[opus], muxId="0"))
    return receiver


def packet(sequence_number: int = 1, ssrc: int = 7, payload_type: int = 111) -> RtpPacket:
    made = RtpPacket(payload_type=payload_type, sequence_number=sequence_number,
                     timestamp=sequence_number * 960)
    made.ssrc = ssrc
    made.payload = b"opus"
    return made


async def test_packets_of_the_codec_are_handed_on_at_once(receiver: PacketReceiver, sink: Sink) -> None:
    await receiver._handle_rtp_packet(packet(3), arrival_time_ms=0)
    await receiver._handle_rtp_packet(packet(2), arrival_time_ms=0)
    assert sink.taken == [(7, 3, 2880, b"opus"), (7, 2, 1920, b"opus")]
    stats = await receiver.getStats()
    inbound = next(entry for entry in stats.values() if entry.type == "inbound-rtp")
    assert inbound.packetsReceived == 2
    await receiver.stop()


async def test_packets_of_another_payload_type_are_dropped(receiver: PacketReceiver, sink: Sink) -> None:
    await receiver._handle_rtp_packet(packet(payload_type=13), arrival_time_ms=0)
    assert sink.taken == []
    await receiver.stop()


async def test_a_peer_cannot_grow_the_reports_by_inventing_sources(
        receiver: PacketReceiver, sink: Sink) -> None:
    for ssrc in range(100):
        await receiver._handle_rtp_packet(packet(ssrc=ssrc), arrival_time_ms=0)
    assert len(sink.taken) == MAX_SOURCES
    await receiver.stop()


async def test_a_fault_behind_the_receiver_does_not_reach_the_connection(
        receiver: PacketReceiver, sink: Sink) -> None:
    sink.broken = True
    await receiver._handle_rtp_packet(packet(), arrival_time_ms=0)
    assert len(sink.faults) == 1
    await receiver.stop()
