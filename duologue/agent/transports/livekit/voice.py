"""The two voices of a room: the caller's track into the call, the reply onto our own track."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from livekit import rtc

from duologue.agent.media.resample import Resampler
from duologue.agent.media.upper_band import UpperBand
from duologue.agent.transports.base import FRAME_MS, CallMedia
from duologue.agent.transports.media_clock import MediaClock
from duologue.engine import INPUT_RATE, Pcm
from duologue.metrics import DROPS

_HEARD_FRAMES = 50
"""Frames of a track that may wait to be fed: a second, which only a stalled process can reach."""

_PUSHES = 2
"""Pushes per frame: a source without a queue takes 10 ms at a time."""

PUBLISH = rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE, dtx=False, red=True)
"""No DTX: its first packets after silence would be what the receiver's buffer adapts on. RED, LiveKit's default: a lost
packet is repaired from the next one, at twice the (small) bit rate and no measurable delay."""


class CallerTrack:
    """Feeds one track to the call, 20 ms at a time, for as long as the track lasts."""

    def __init__(self, track: rtc.RemoteAudioTrack, feed: Callable[[Pcm], None],
                 on_fault: Callable[[Exception], None], treat: Callable[[Pcm], Pcm] | None = None) -> None:
        """``treat`` is done to each frame on the way."""
        self.track = track
        self._treat = treat
        self._stream = rtc.AudioStream.from_track(
            track=track, sample_rate=INPUT_RATE, num_channels=1, frame_size_ms=FRAME_MS, capacity=_HEARD_FRAMES)
        self._feed = feed
        self._on_fault = on_fault
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            async for event in self._stream:
                pcm = np.frombuffer(event.frame.data, np.int16)
                self._feed(pcm if self._treat is None else self._treat(pcm))
        except Exception as fault:
            self._on_fault(fault)

    async def close(self) -> None:
        """Stop feeding and free the stream. After a full reconnect a stream neither ends nor raises: close it too."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._stream.aclose()


class TelephoneBand:
    """Makes up the upper half of a telephone's band: livekit-sip decodes G.711 and sends Opus, with that half empty.

    To what was G.722 it adds little: that is never far below the made-up band.
    """

    def __init__(self) -> None:
        self._lower = Resampler(INPUT_RATE, INPUT_RATE // 2)
        self._upper = UpperBand()

    def widen(self, pcm: Pcm) -> Pcm:
        """Return the next samples with their upper half in them; an even number of int16 at 16 kHz."""
        full: Pcm = np.clip(pcm + self._upper.above(self._lower.process(pcm)), -32_768, 32_767).astype(np.int16)
        return full


class ReplyTrack:
    """Puts ``pull`` on a track every 20 ms, on our clock.

    The source has no queue: what is pushed goes to the encoder at once. So a flush is heard at the next frame, what was
    pulled is what was played (as at every other door), and the way to the ear is 20 ms shorter than with the shortest
    queue.
    """

    def __init__(self, call: CallMedia, pull: Callable[[], Pcm | None], on_fault: Callable[[Exception], None]) -> None:
        """``pull`` gives int16, shape (output_rate / 50,), or None while nothing can be sent."""
        self._rate = call.output_rate
        self._source = rtc.AudioSource(self._rate, 1, queue_size_ms=0)
        self.track = rtc.LocalAudioTrack.create_audio_track("agent", self._source)
        self._pull = pull
        self._on_fault = on_fault
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the clock."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        clock = MediaClock(loop.time())
        try:
            while True:
                now = loop.time()
                tick = clock.next(now)
                if tick.skipped:
                    DROPS.labels(what="reply_frame", reason="late").inc(tick.skipped)
                if tick.due > now:
                    await asyncio.sleep(tick.due - now)
                frame = self._pull()
                if frame is not None:
                    for piece in np.split(frame, _PUSHES):
                        await self._source.capture_frame(rtc.AudioFrame(piece.tobytes(), self._rate, 1, piece.size))
        except Exception as fault:
            self._on_fault(fault)

    async def close(self) -> None:
        """Stop the clock and free the source."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._source.aclose()
