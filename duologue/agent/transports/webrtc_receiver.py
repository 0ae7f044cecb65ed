"""The caller's RTP on its way in, past aiortc's queue, jitter buffer and decoder thread.

aiortc 1.16's audio path holds 16 packets: one lost packet costs 200 ms for the rest of the call, its frames
are never delivered, and it knows neither in-band FEC nor concealment. The receiver here takes each datagram as
the socket gives it and hands its packet on at once; it only keeps aiortc's statistics (receiver reports are what
makes browsers send FEC).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import pylibsrtp
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpReceiveParameters
from aiortc.rtcrtpreceiver import RTCRtpReceiver, StreamStatistics
from aiortc.rtcrtptransceiver import RTCRtpTransceiver

from duologue.agent.media.opus import RTP_CLOCK
from duologue.agent.transports.rtp import MalformedRtpError, RtpPacket, read_rtp
from duologue.metrics import DROPS

# Private names of aiortc that are used; a test holds each against the installed version.
RECEIVER_STARTED = "_RTCRtpReceiver__started"
RECEIVER_RTCP_TASK = "_RTCRtpReceiver__rtcp_task"
RECEIVER_STREAMS = "_RTCRtpReceiver__remote_streams"
TRANSCEIVER_RECEIVER = "_RTCRtpTransceiver__receiver"

MAX_SOURCES = 8
"""Sources (SSRCs) a call may send from, one after another; browsers use one."""


class PacketSink(Protocol):
    """Takes RTP packets; called on the event loop."""

    def __call__(self, packet: RtpPacket) -> None:
        """Take one packet, in the order of arrival."""


class PacketReceiver(RTCRtpReceiver):
    """A receiver that reports statistics and gives packets of the negotiated codec to ``sink``.

    ``heard`` counts the datagrams of media and control (not STUN) that came.
    """

    def __init__(self, transport: RTCDtlsTransport, sink: PacketSink,
                 on_fault: Callable[[Exception], None]) -> None:
        super().__init__("audio", transport)
        self.heard = 0
        self._sink = sink
        self._on_fault = on_fault
        self._payload_type: int | None = None
        self._streams: dict[int, StreamStatistics] = getattr(self, RECEIVER_STREAMS)
        self._pass_on: Callable[[bytes, int], None] = lambda data, component: None

    async def receive(self, parameters: RTCRtpReceiveParameters) -> None:
        """Start as aiortc's does, but without its decoder thread, and before its queue of datagrams."""
        if getattr(self, RECEIVER_STARTED):
            return
        self._payload_type = parameters.codecs[0].payloadType
        self.transport._register_rtp_receiver(self, parameters)
        connection = self.transport.transport._connection
        self._pass_on = connection.data_received
        connection.data_received = self._datagram  # type: ignore[method-assign]
        setattr(self, RECEIVER_RTCP_TASK, asyncio.ensure_future(self._run_rtcp()))
        setattr(self, RECEIVER_STARTED, True)

    def _datagram(self, data: bytes, component: int) -> None:
        """Take what the socket received and is not STUN."""
        self.heard += 1
        # RFC 7983 section 7 tells SRTP by its first byte, RFC 5761 section 4 RTP from RTCP by its second.
        if len(data) < 2 or not 127 < data[0] < 192 or 192 <= data[1] <= 223:
            self._pass_on(data, component)
            return
        try:
            packet = read_rtp(self.transport._rx_srtp.unprotect(data))
        except (pylibsrtp.Error, MalformedRtpError):
            DROPS.labels(what="rtp_packet", reason="malformed").inc()
            return
        self._take(packet)

    def _take(self, packet: RtpPacket) -> None:
        if packet.payload_type != self._payload_type:
            DROPS.labels(what="rtp_packet", reason="payload_type").inc()
            return
        stream = self._streams.get(packet.ssrc)
        if stream is None:
            if len(self._streams) >= MAX_SOURCES:
                DROPS.labels(what="rtp_packet", reason="sources").inc()
                return
            stream = self._streams[packet.ssrc] = StreamStatistics(RTP_CLOCK)
            self.transport._rtp_router.route_rtp(packet)  # type: ignore[arg-type]  # so that its RTCP finds us
        stream.add(packet)  # type: ignore[arg-type]
        try:
            self._sink(packet)
        except Exception as fault:  # must not reach the socket's callback, where it is nobody's
            self._on_fault(fault)


def install(receiver: PacketReceiver, transceiver: RTCRtpTransceiver) -> None:
    """Put ``receiver`` in the place of the one that ``transceiver`` was made with."""
    receiver._set_rtcp_ssrc(transceiver.sender._ssrc)
    setattr(transceiver, TRANSCEIVER_RECEIVER, receiver)
