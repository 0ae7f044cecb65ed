"""How to publish a reply in a LiveKit room: the source's queue and RED, by what they cost on the way.

``python -m benchmarks.livekit_track [--clicks N]``: two of LiveKit's SDKs in one process and a real server. A tone is
pushed 20 ms at a time on a steady clock; measured is when the other end gets its first and its last sample.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from livekit import rtc

from benchmarks.report import Table
from tests.harness.livekit import LiveKitProcess, livekit_server

RATE = 24_000
FRAME = RATE // 50
SETTLED = 100
"""Frames before the first tone: jitter buffers need two seconds."""
PERIOD, LENGTH = 50, 5
"""A tone of so many frames begins every so many."""
LOUD = 800


@dataclass(slots=True)
class Way:
    """One way to publish, and what was measured of it, in milliseconds and kbit/s."""

    queue_ms: int
    red: bool
    onset: list[float] = field(default_factory=list)
    stop: list[float] = field(default_factory=list)
    kbit_s: float = 0.0

    @property
    def name(self) -> str:
        """What it is."""
        return f"{'a queue of ' + str(self.queue_ms) + ' ms' if self.queue_ms else 'no queue'}, RED {_onoff(self.red)}"


def _onoff(on: bool) -> str:
    return "on" if on else "off"


async def measure(server: LiveKitProcess, way: Way, clicks: int) -> None:
    """Push tones through a room of their own."""
    room = f"{way.queue_ms}-{way.red}"
    speaker, hearer = rtc.Room(), rtc.Room()
    subscribed: asyncio.Queue[rtc.Track] = asyncio.Queue()
    hearer.on("track_subscribed", lambda track, *_: subscribed.put_nowait(track))
    await hearer.connect(server.url, server.token(room, "hearer"))
    await speaker.connect(server.url, server.token(room, "speaker"))
    source = rtc.AudioSource(RATE, 1, queue_size_ms=way.queue_ms)
    publication = await speaker.local_participant.publish_track(
        rtc.LocalAudioTrack.create_audio_track("tone", source),
        rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE, dtx=False, red=way.red))
    stream = rtc.AudioStream.from_track(
        track=await subscribed.get(), sample_rate=16_000, num_channels=1, frame_size_ms=10)
    arrivals: list[tuple[float, int]] = []

    async def listen() -> None:
        async for event in stream:
            pcm = np.frombuffer(event.frame.data, np.int16).astype(int)
            arrivals.append((time.monotonic(), int(np.abs(pcm).max())))

    listening = asyncio.ensure_future(listen())
    await publication.wait_for_subscription()
    begun, ended = await push(source, way, clicks)
    await asyncio.sleep(0.5)
    loud = np.array([at for at, peak in arrivals if peak > LOUD])
    for start, end in zip(begun, ended, strict=True):
        mine = loud[(loud > start) & (loud < start + PERIOD / 50)]
        if mine.size:
            way.onset.append(1000 * (float(mine[0]) - start))
            way.stop.append(1000 * (float(mine[-1]) - end))
    stats = await hearer.get_rtc_stats()
    received = [one.inbound_rtp.inbound.bytes_received for one in (*stats.publisher_stats, *stats.subscriber_stats)
                if one.HasField("inbound_rtp")]
    way.kbit_s = sum(received) * 8 / 1000 / ((SETTLED + clicks * PERIOD) / 50)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await stream.aclose()
    await speaker.disconnect()
    await hearer.disconnect()
    await source.aclose()


async def push(source: rtc.AudioSource, way: Way, clicks: int) -> tuple[list[float], list[float]]:
    """Push the frames in time; returns when each tone's first frame and the first silent one after it were pushed."""
    tone = np.round(8000 * np.sin(2 * np.pi * 440 * np.arange(FRAME) / RATE)).astype(np.int16)
    silence = np.zeros(FRAME, np.int16)
    begun, ended = [], []
    start = time.monotonic()
    for index in range(SETTLED + clicks * PERIOD):
        await asyncio.sleep(start + index / 50 - time.monotonic())
        place = index % PERIOD if index >= SETTLED else PERIOD
        if place == 0:
            begun.append(time.monotonic())
        elif place == LENGTH:
            ended.append(time.monotonic())
        for piece in np.split(tone if place < LENGTH else silence, 1 if way.queue_ms else 2):
            await source.capture_frame(rtc.AudioFrame(piece.tobytes(), RATE, 1, piece.size))
    return begun, ended


async def run(clicks: int) -> None:
    ways = [Way(queue, red) for queue in (0, 20, 60) for red in (False, True)]
    with tempfile.TemporaryDirectory() as folder:
        async with livekit_server(Path(folder)) as server:
            for way in ways:
                await measure(server, way, clicks)
    onset, stop = Table("Push to ear: a tone's first sample"), Table("Push to ear: its last sample")
    for way in ways:
        onset.add(way.name, way.onset)
        stop.add(way.name, way.stop)
    onset.print()
    stop.print()
    print("; ".join(f"{way.name}: {way.kbit_s:.0f} kbit/s" for way in ways))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clicks", type=int, default=15)
    asyncio.run(run(parser.parse_args().clicks))


if __name__ == "__main__":
    main()
