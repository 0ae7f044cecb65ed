"""One stream of RTP each way (RFC 3550): addresses, SRTP, RTCP. What is in the packets is others' affair."""

from __future__ import annotations

import base64
import random
import secrets
import struct
import time
from collections.abc import Callable

from aiortc import clock
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtp import (
    AnyRtcpPacket,
    RtcpByePacket,
    RtcpPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
)

from duologue.agent.media.expected_loss import ExpectedLoss
from duologue.agent.transports.rtp import MalformedRtpError, RtpPacket, read_rtp, write_rtp
from duologue.agent.transports.sip.media.negotiation import Address, Agreement
from duologue.agent.transports.sip.media.source_guard import SourceGuard
from duologue.agent.transports.sip.media.srtp import Plain, Protection, Refused, protection
from duologue.agent.transports.sip.media.udp_ports import PortPair
from duologue.metrics import DROPS

_CNAME = 1
"""Item type (RFC 3550 section 6.5.1)."""

REPORT_S = 5.0
"""Mean time between reports (RFC 3550 section 6.2: the recommended least for two parties)."""


class RtpSession:
    """Sends and receives one stream; ``now`` is the steady clock, in seconds."""

    def __init__(self, ports: PortPair, sink: Callable[[RtpPacket], None], on_loss: Callable[[int], None],
                 on_fault: Callable[[Exception], None], now: Callable[[], float]) -> None:
        """``sink`` gets the caller's packets; ``on_loss`` per cent of ours that are lost, when it is told of it.

        What either raises goes to ``on_fault``.
        """
        self.heard_at = now()
        """When the last valid packet came, media or control; the session's beginning before the first."""
        self._ports = ports
        self._sink = sink
        self._on_loss = on_loss
        self._on_fault = on_fault
        self._now = now
        self._agreement: Agreement | None = None
        self._accepted: frozenset[int] = frozenset()
        self._protection: Protection = Plain()
        self._guard = SourceGuard()
        self._loss = ExpectedLoss()
        self._cname = base64.b64encode(secrets.token_bytes(12))  # RFC 7022 section 4.2: 96 random bits
        self._statistics: tuple[int, StreamStatistics] | None = None
        self._their_report: tuple[int, float] | None = None  # middle of its NTP time, when it came
        self._ssrc = self._sequence = self._start = self._packets = self._octets = 0
        self._last_sent: tuple[int, float] | None = None  # RTP timestamp, wall clock
        self._report_at = now() + REPORT_S / 2
        self._new_source()

    def apply(self, agreement: Agreement, accepted: frozenset[int]) -> None:
        """Go by this agreement from now on, and take packets of the payload types ``accepted``."""
        before, self._agreement = self._agreement, agreement
        self._accepted = accepted
        if before is None or before.keys != agreement.keys:
            self._protection = protection(agreement.keys)
        if before is not None and before.codec.clock != agreement.codec.clock:
            self._new_source()  # RFC 7160 section 4.1: another clock, another source
        self._guard.named(agreement.peer.address)
        if before is None:
            self._ports.open(self._media, self._control)

    def send(self, payload_type: int, ticks: int, payload: bytes, *, marker: bool = False) -> None:
        """Send one packet; ``ticks`` of its clock since the stream's beginning. Nothing while the caller is unknown."""
        to = self._guard.source
        if to is None:
            return
        timestamp = (self._start + ticks) & 0xFFFFFFFF
        packet = write_rtp(RtpPacket(payload_type, self._sequence, timestamp, self._ssrc, payload), marker)
        self._ports.send(self._protection.wrap(packet), to)
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._packets += 1
        self._octets += len(payload)
        self._last_sent = (timestamp, time.time())

    def tick(self) -> None:
        """Let time pass: send a report when one is due."""
        if self._now() >= self._report_at:
            self._report_at = self._now() + REPORT_S * random.uniform(0.5, 1.5)  # RFC 3550 section 6.3.1
            self._send_control(self._report(), RtcpSdesPacket([RtcpSourceInfo(
                ssrc=self._ssrc, items=[(_CNAME, self._cname)])]))

    def close(self) -> None:
        """Say goodbye and give the ports back; idempotent."""
        if self._agreement is not None and self._packets:
            self._send_control(self._report(), RtcpByePacket([self._ssrc]))
        self._ports.close()

    def _new_source(self) -> None:
        # Random starts (RFC 3550 section 5.1); the sequence in the lower half, for SRTP's sake (RFC 3711 3.3.1).
        self._ssrc = random.randrange(1 << 32)
        self._sequence = random.randrange(1 << 15)
        self._start = random.randrange(1 << 32)
        self._packets = self._octets = 0
        self._last_sent = None

    # --- in -------------------------------------------------------------------------------------------------

    def _media(self, data: bytes, source: Address) -> None:
        assert self._agreement is not None
        # RFC 5761 section 4 tells RTCP on the same port by its second byte.
        if self._agreement.peer.multiplexed and len(data) > 1 and 192 <= data[1] <= 223:
            self._control(data, source)
            return
        try:
            packet = read_rtp(self._protection.unwrap(data))
        except (Refused, MalformedRtpError):
            DROPS.labels(what="rtp_packet", reason="malformed").inc()
            return
        if packet.payload_type not in self._accepted:
            DROPS.labels(what="rtp_packet", reason="payload_type").inc()
            return
        if not self._guard.admit(source, packet, self._now(), authentic=self._protection.authentic):
            DROPS.labels(what="rtp_packet", reason="source").inc()
            return
        self.heard_at = self._now()
        if self._statistics is None or self._statistics[0] != packet.ssrc:
            self._statistics = (packet.ssrc, StreamStatistics(self._agreement.codec.clock))
        self._statistics[1].add(packet)  # type: ignore[arg-type]
        try:
            self._sink(packet)
        except Exception as fault:  # must not reach the socket's callback, where it is nobody's
            self._on_fault(fault)

    def _control(self, data: bytes, source: Address) -> None:
        expected = (self._guard.source, self._agreement.peer.control if self._agreement is not None else None)
        if not self._protection.authentic and source[0] not in [each[0] for each in expected if each is not None]:
            DROPS.labels(what="rtcp_packet", reason="source").inc()
            return
        try:
            packets = RtcpPacket.parse(self._protection.unwrap_control(data))
        except (Refused, ValueError, struct.error):
            DROPS.labels(what="rtcp_packet", reason="malformed").inc()
            return
        self.heard_at = self._now()
        for packet in packets:
            if isinstance(packet, RtcpSrPacket):
                self._their_report = (packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF, self._now())
            if isinstance(packet, RtcpSrPacket | RtcpRrPacket):
                for report in packet.reports:
                    if report.ssrc == self._ssrc:
                        self._on_loss(self._loss.reported(report.fraction_lost))

    # --- reports --------------------------------------------------------------------------------------------

    def _report(self) -> AnyRtcpPacket:
        received: list[RtcpReceiverInfo] = []
        if self._statistics is not None:
            ssrc, statistics = self._statistics
            middle, at = self._their_report or (0, 0.0)
            received.append(RtcpReceiverInfo(
                ssrc=ssrc, fraction_lost=statistics.fraction_lost, packets_lost=statistics.packets_lost,
                highest_sequence=(statistics.cycles + (statistics.max_seq or 0)) & 0xFFFFFFFF,
                jitter=statistics.jitter & 0xFFFFFFFF, lsr=middle,
                dlsr=round((self._now() - at) * 65_536) & 0xFFFFFFFF if middle else 0))
        if self._last_sent is None or self._agreement is None:
            return RtcpRrPacket(self._ssrc, received)
        timestamp, at_wall = self._last_sent
        since = round((time.time() - at_wall) * self._agreement.codec.clock)
        return RtcpSrPacket(self._ssrc, RtcpSenderInfo(
            ntp_timestamp=clock.current_ntp_time(), rtp_timestamp=(timestamp + since) & 0xFFFFFFFF,
            packet_count=self._packets & 0xFFFFFFFF, octet_count=self._octets & 0xFFFFFFFF), received)

    def _send_control(self, *packets: AnyRtcpPacket) -> None:
        peer = self._agreement.peer if self._agreement is not None else None
        if peer is None or peer.control is None:
            return
        to = peer.control
        if self._guard.source is not None and self._guard.source != peer.address:
            # Behind a NAT: where its media comes from, and the port beside it.
            host, port = self._guard.source
            to = (host, port if peer.multiplexed else min(port + 1, 65_535))
        data = self._protection.wrap_control(b"".join(map(bytes, packets)))
        if peer.multiplexed:
            self._ports.send(data, to)
        else:
            self._ports.send_control(data, to)
