"""The reply on its way out: Opus packets on one media clock, past aiortc's encoder and its task per stream.

There is no queue: a frame is pulled from the call, encoded and sent in one go when it is due. aiortc's own way
(a track, a task that awaits it, an encoder thread, an audio level measured sample by sample) costs more than
half as much as the encoding itself.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Coroutine
from typing import Any

from aiortc import RTCRtpSender, clock
from aiortc.rtcdtlstransport import RTCDtlsTransport
from aiortc.rtcrtpparameters import RTCRtpCodecParameters
from aiortc.rtcrtptransceiver import RTCRtpTransceiver
from aiortc.rtp import AnyRtcpPacket, RtcpRrPacket, RtcpSrPacket

from duologue.agent.media.expected_loss import ExpectedLoss
from duologue.agent.media.opus import RTP_CLOCK, OpusEncoder
from duologue.agent.transports.base import FRAME_MS
from duologue.agent.transports.media_clock import MediaClock, Tick
from duologue.agent.transports.rtp import RtpPacket, write_rtp
from duologue.engine import Pcm
from duologue.metrics import DROPS

# Private names of aiortc that are used; a test holds each against the installed version.
SENDER_RTP_STARTED = "_RTCRtpSender__rtp_started"
SENDER_RTP_EXITED = "_RTCRtpSender__rtp_exited"
SENDER_NTP_TIME = "_RTCRtpSender__ntp_timestamp"
SENDER_RTP_TIME = "_RTCRtpSender__rtp_timestamp"
SENDER_OCTETS = "_RTCRtpSender__octet_count"
SENDER_PACKETS = "_RTCRtpSender__packet_count"
TRANSCEIVER_SENDER = "_RTCRtpTransceiver__sender"

_TICKS = RTP_CLOCK * FRAME_MS // 1000

_GRID_S = 0.005
"""Streams begin at multiples of this, so that one wake-up of the process serves several: at 20 calls that
spares a tenth of the CPU."""

_REPORT_FRAMES = 10
"""Frames from one note for the sender reports to the next; a report is due every 25 to 75 frames."""

_COMPLEXITY = 3
"""Of 0..10. Encoding is almost half of a call's media cost; 3 takes a quarter less of it than 5, by narrower
searches at the same bit rate."""


class ReplySender(RTCRtpSender):
    """Sends 20 ms of ``pull`` when they are due, from the moment the connection is up.

    ``pull`` returns int16 mono at ``rate`` Hz, shape (rate / 50,). When it fails, ``on_fault`` is told and
    nothing more is sent.
    """

    def __init__(self, transport: RTCDtlsTransport, pull: Callable[[], Pcm], rate: int,
                 on_fault: Callable[[Exception], None]) -> None:
        super().__init__("audio", transport)
        self._pull = pull
        self._on_fault = on_fault
        self._encoder = OpusEncoder(rate, complexity=_COMPLEXITY)
        self._loss = ExpectedLoss()
        self._events = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._packets = self._octets = 0
        # Random starts (RFC 3550 section 5.1); the sequence in the lower half, for SRTP's sake (RFC 3711 3.3.1).
        self._sequence = random.randrange(1 << 15)
        self._timestamp = random.randrange(1 << 32)

    async def _run_rtp(self, codec: RTCRtpCodecParameters) -> None:
        """Stand in for aiortc's sending task: starts the clock, and stops it when it is cancelled."""
        getattr(self, SENDER_RTP_STARTED).set()
        try:
            begin = math.ceil(self._events.time() / _GRID_S) * _GRID_S
            self._schedule(MediaClock(begin), codec.payloadType or 0)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        finally:
            self.silence()
            getattr(self, SENDER_RTP_EXITED).set()

    def silence(self) -> None:
        """Send nothing more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _handle_rtcp_packet(self, packet: AnyRtcpPacket) -> None:
        """Heed how much of what was sent did arrive."""
        if isinstance(packet, RtcpRrPacket | RtcpSrPacket):
            for report in packet.reports:
                if report.ssrc == self._ssrc:
                    self._encoder.expect_loss(self._loss.reported(report.fraction_lost))
        await super()._handle_rtcp_packet(packet)

    def _schedule(self, media: MediaClock, payload_type: int) -> None:
        tick = media.next(self._events.time())
        if tick.skipped:
            DROPS.labels(what="reply_frame", reason="late").inc(tick.skipped)
        self._timer = self._events.call_at(tick.due, self._send_frame, media, tick, payload_type)

    def _send_frame(self, media: MediaClock, tick: Tick, payload_type: int) -> None:
        self._timer = None
        try:
            payload = self._encoder.encode(self._pull())
            timestamp = (self._timestamp + tick.frame * _TICKS) & 0xFFFFFFFF
            packet = RtpPacket(payload_type, self._sequence, timestamp, self._ssrc, payload)
            _finish(self.transport._send_rtp(write_rtp(packet)))
        except ConnectionError:
            return  # the connection is on its way down
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._on_fault(fault)
            return
        self._sequence = (self._sequence + 1) & 0xFFFF
        self._packets += 1
        self._octets += len(payload)
        if self._packets % _REPORT_FRAMES == 1:
            self._note_for_reports(timestamp)
        self._schedule(media, payload_type)

    def _note_for_reports(self, timestamp: int) -> None:
        """Leave what aiortc's sender reports say: any packet's time by both clocks, and what was sent."""
        setattr(self, SENDER_NTP_TIME, clock.current_ntp_time())
        setattr(self, SENDER_RTP_TIME, timestamp)
        setattr(self, SENDER_PACKETS, self._packets)
        setattr(self, SENDER_OCTETS, self._octets)


def install(sender: ReplySender, transceiver: RTCRtpTransceiver) -> None:
    """Put ``sender`` in the place of the one that ``transceiver`` was made with."""
    sender._stream_id = transceiver.sender._stream_id
    setattr(transceiver, TRANSCEIVER_SENDER, sender)


def _finish(sending: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits: sending a datagram hands it to the socket at once."""
    try:
        sending.send(None)
    except StopIteration:
        return
    sending.close()
    raise RuntimeError("aiortc waited while sending a packet")
