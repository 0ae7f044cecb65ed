"""The reply on its way out: ready Opus packets, paced by one media clock.

aiortc's sender takes ``av.Packet`` as it is: no resampler, no encoder thread, no audio level measured sample
by sample. There is no queue: a frame is pulled from the call at the moment it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction

from aiortc import RTCRtpSender
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.stats import RTCRemoteInboundRtpStreamStats
from av.packet import Packet
from av.stream import Stream

from duologue.agent.media.opus import RTP_CLOCK, OpusEncoder
from duologue.agent.transports.base import FRAME_MS
from duologue.agent.transports.media_clock import MediaClock
from duologue.engine import Pcm
from duologue.metrics import DROPS

_TICKS = RTP_CLOCK * FRAME_MS // 1000
_TIME_BASE = Fraction(1, RTP_CLOCK)

_COMPLEXITY = 3
"""Of 0..10. Encoding is almost half of a call's media cost; 3 takes a quarter less of it than 5, by narrower
searches at the same bit rate."""

_REPORT_FRAMES = 2000 // FRAME_MS
"""Frames between two looks at what the peer reports: 2 s, peers report every 1 s (aiortc) to 5 s (Chrome)."""


class ExpectedLoss:
    """What loss to protect the reply against, from the peer's receiver reports: up at once, down by halves.

    Without loss the encoder makes no FEC, which spares a third of its time and some bits.
    """

    def __init__(self) -> None:
        self.percent = 0
        """Loss to expect, 0 to 50."""

    def reported(self, fraction_lost: float) -> int:
        """Take one report, in 1/256 (RFC 3550 section 6.4.1); returns the new ``percent``."""
        now = min(round(fraction_lost * 100 / 256), 50)
        self.percent = max(now, self.percent // 2)
        return self.percent


class ReplyTrack(MediaStreamTrack):
    """The track aiortc sends: every ``recv`` is one 20 ms frame of ``pull``, encoded.

    ``pull`` returns int16 mono at ``rate`` Hz, shape (rate / 50,). When it fails, ``on_fault`` is told and
    the track ends.
    """

    kind = "audio"

    def __init__(self, pull: Callable[[], Pcm], rate: int, on_fault: Callable[[Exception], None]) -> None:
        super().__init__()
        self._pull = pull
        self._on_fault = on_fault
        self._encoder = OpusEncoder(rate, complexity=_COMPLEXITY)
        self._clock: MediaClock | None = None
        self._frames = 0
        self._sender: RTCRtpSender | None = None
        self._expected = ExpectedLoss()

    def heed(self, sender: RTCRtpSender) -> None:
        """Let the encoder follow the loss that is reported to ``sender``, which sends this track."""
        self._sender = sender

    async def recv(self) -> Packet[Stream]:
        """Wait until the next frame is due and return it; raises ``MediaStreamError`` once stopped."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._clock is None:
            self._clock = MediaClock(now)
        tick = self._clock.next(now)
        if tick.skipped:
            DROPS.labels(what="reply_frame", reason="late").inc(tick.skipped)
        if tick.due > now:
            await asyncio.sleep(tick.due - now)
        if self.readyState != "live":
            raise MediaStreamError
        self._frames += 1
        try:
            if self._sender is not None and self._frames % _REPORT_FRAMES == 0:
                await self._heed_reports(self._sender)
            packet: Packet[Stream] = Packet(self._encoder.encode(self._pull()))
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._on_fault(fault)
            raise MediaStreamError from fault
        packet.pts = tick.index * _TICKS
        packet.time_base = _TIME_BASE
        return packet

    async def _heed_reports(self, sender: RTCRtpSender) -> None:
        for entry in (await sender.getStats()).values():
            if isinstance(entry, RTCRemoteInboundRtpStreamStats):
                self._encoder.expect_loss(self._expected.reported(entry.fractionLost))
