"""The reply on its way out: ready Opus packets, paced by one media clock.

aiortc's sender takes ``av.Packet`` as it is: no resampler, no encoder thread, no audio level measured sample
by sample. There is no queue: a frame is pulled from the call at the moment it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from fractions import Fraction

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av.packet import Packet
from av.stream import Stream

from duologue.agent.media.opus import RTP_CLOCK, OpusEncoder
from duologue.agent.transports.base import FRAME_MS
from duologue.agent.transports.media_clock import MediaClock
from duologue.engine import Pcm
from duologue.metrics import DROPS

_TICKS = RTP_CLOCK * FRAME_MS // 1000
_TIME_BASE = Fraction(1, RTP_CLOCK)


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
        self._encoder = OpusEncoder(rate)
        self._clock: MediaClock | None = None

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
        try:
            packet: Packet[Stream] = Packet(self._encoder.encode(self._pull()))
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._on_fault(fault)
            raise MediaStreamError from fault
        packet.pts = tick.index * _TICKS
        packet.time_base = _TIME_BASE
        return packet
