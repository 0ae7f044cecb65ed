"""The caller's RTP on its way in, past aiortc's jitter buffer and decoder thread.

aiortc 1.16's audio path holds 16 packets: one lost packet costs 200 ms for the rest of the call, its frames
are never delivered, and it knows neither in-band FEC nor concealment. The receiver here only keeps its
statistics (receiver reports are what makes browsers send FEC) and hands packets on as they come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpReceiveParameters
from aiortc.rtcrtpreceiver import RTCRtpReceiver, StreamStatistics
from aiortc.rtcrtptransceiver import RTCRtpTransceiver
from aiortc.rtp import RtpPacket

from duologue.agent.media.opus import RTP_CLOCK
from duologue.metrics import DROPS

# Private names of aiortc that are used; a test holds each against the installed version.
RECEIVER_STARTED = "_RTCRtpReceiver__started"
RECEIVER_RTCP_TASK = "_RTCRtpReceiver__rtcp_task"
RECEIVER_STREAMS = "_RTCRtpReceiver__remote_streams"
TRANSCEIVER_RECEIVER = "_RTCRtpTransceiver__receiver"
DTLS_RECEIVED = "_RTCDtlsTransport__rx_packets"

MAX_SOURCES = 8
"""Sources (SSRCs) a call may send from, one after another; browsers use one."""


class PacketSink(Protocol):
    """Takes RTP packets; called on the event loop."""

    def __call__(self, ssrc: int, sequence_number: int, timestamp: int, payload: bytes) -> None:
        """Take one packet; ``timestamp`` counts at 48 kHz (RFC 7587)."""


class PacketReceiver(RTCRtpReceiver):
    """A receiver that reports statistics and gives packets of the negotiated codec to ``sink``."""

    def __init__(self, transport: RTCDtlsTransport, sink: PacketSink,
                 on_fault: Callable[[Exception], None]) -> None:
        super().__init__("audio", transport)
        self._sink = sink
        self._on_fault = on_fault
        self._payload_type: int | None = None
        self._streams: dict[int, StreamStatistics] = getattr(self, RECEIVER_STREAMS)

    async def receive(self, parameters: RTCRtpReceiveParameters) -> None:
        """Start as aiortc's does, but without its decoder thread."""
        if getattr(self, RECEIVER_STARTED):
            return
        self._payload_type = parameters.codecs[0].payloadType
        self.transport._register_rtp_receiver(self, parameters)
        setattr(self, RECEIVER_RTCP_TASK, asyncio.ensure_future(self._run_rtcp()))
        setattr(self, RECEIVER_STARTED, True)

    async def _handle_rtp_packet(self, packet: RtpPacket, arrival_time_ms: int) -> None:
        """Take a packet from the DTLS transport, which calls this by its keyword names."""
        if packet.payload_type != self._payload_type:
            DROPS.labels(what="rtp_packet", reason="payload_type").inc()
            return
        ssrc = packet.ssrc
        stream = self._streams.get(ssrc)
        if stream is None:
            if len(self._streams) >= MAX_SOURCES:
                DROPS.labels(what="rtp_packet", reason="sources").inc()
                return
            stream = self._streams[ssrc] = StreamStatistics(RTP_CLOCK)
        stream.add(packet)
        try:
            self._sink(ssrc, packet.sequence_number, packet.timestamp, packet.payload)
        except Exception as fault:  # must not reach the DTLS task, which would end without a word
            self._on_fault(fault)


def install(receiver: PacketReceiver, transceiver: RTCRtpTransceiver) -> None:
    """Put ``receiver`` in the place of the one that ``transceiver`` was made with."""
    receiver._set_rtcp_ssrc(transceiver.sender._ssrc)
    setattr(transceiver, TRANSCEIVER_RECEIVER, receiver)


def datagrams_received(transport: RTCDtlsTransport) -> int:
    """Datagrams of media and control (not STUN) that the peer has sent so far."""
    return int(getattr(transport, DTLS_RECEIVED))
