"""A caller without a browser: an aiortc peer that sends a microphone as Opus and keeps every packet it gets.

Cheaper than Chromium (no rendering, no echo canceller), so many fit on one machine; what was received is
kept packet by packet and decoded afterwards.
"""

from __future__ import annotations

import asyncio
import fractions
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

import aiohttp
import av
import numpy as np
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpReceiver, RTCSessionDescription
from aiortc.mediastreams import MediaStreamTrack
from aiortc.rtcrtpreceiver import StreamStatistics
from aiortc.rtp import RtpPacket

from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.recording import ChannelEvent, Recording
from tests.harness.sound import RATE, Sound, to_pcm

FRAME = RATE // 50
"""Samples in a packet of 20 ms."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A packet of the agent's voice: when it came (``time.monotonic``), RTP timestamp, Opus payload."""

    at: float
    timestamp: int
    payload: bytes


class RefusedError(Exception):
    """The server did not take the call; ``status`` and ``body`` are its answer."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


def encode(sound: Sound, tail_s: float = 0.5) -> list[bytes]:
    """Opus packets of 20 ms with in-band FEC for 10 % loss, mono, 32 kb/s: what a browser's sender makes."""
    encoder: Any = av.CodecContext.create("libopus", "w")
    encoder.sample_rate, encoder.layout, encoder.format, encoder.bit_rate = RATE, "mono", "s16", 32_000
    encoder.options = {"application": "voip", "frame_duration": "20", "fec": "1", "packet_loss": "10"}
    pcm = to_pcm(np.concatenate([sound, np.zeros(round(tail_s * RATE) + FRAME, np.float32)]))
    packets: list[bytes] = []
    for start in range(0, pcm.size - FRAME + 1, FRAME):
        frame = av.AudioFrame.from_ndarray(pcm[None, start : start + FRAME], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, start, fractions.Fraction(1, RATE)
        packets += [bytes(packet) for packet in encoder.encode(frame)]
    return packets


class _MicrophoneTrack(MediaStreamTrack):
    """Sends ready packets in real time, the last one (silence) over and over."""

    kind = "audio"

    def __init__(self, packets: list[bytes]) -> None:
        super().__init__()
        self.started = 0.0
        self._packets = packets
        self._next = 0

    async def recv(self) -> Any:
        if not self.started:
            self.started = time.monotonic()
        await asyncio.sleep(self.started + self._next * 0.02 - time.monotonic())
        packet = av.Packet(self._packets[min(self._next, len(self._packets) - 1)])
        packet.pts, packet.time_base = self._next * FRAME, fractions.Fraction(1, RATE)
        self._next += 1
        return packet


class PeerCall:
    """One call; its clock starts with the first packet of its microphone."""

    def __init__(self, peer: RTCPeerConnection, track: _MicrophoneTrack, microphone: Microphone) -> None:
        self.arrivals: list[Arrival] = []
        self.location = ""
        """Where the call lives on the server (the answer's Location)."""
        self.microphone = microphone
        self._peer = peer
        self._track = track
        self._messages: list[tuple[float, str]] = []
        self.channel = peer.createDataChannel("oai-events")
        self.channel.on("message", lambda data: self._messages.append((time.monotonic(), str(data))))

    @property
    def samples(self) -> int:
        """Samples the microphone has sent by now."""
        return round((time.monotonic() - self._track.started) * RATE) if self._track.started else 0

    def send(self, body: dict[str, Any]) -> None:
        """Send a message on the data channel."""
        self.channel.send(json.dumps(body))

    def recording(self) -> Recording:
        """Both directions so far.

        The agent's track lies where the RTP timestamps put it, shifted by the median time on the way: what a
        receiver without any buffer would play. Lost packets are silence.
        """
        samples = self.samples
        mic = self.microphone.sound(tail_s=max(samples - self.microphone.length, 0) / RATE)[:samples]
        agent = np.zeros(samples, np.float32)
        arrivals, started = list(self.arrivals), self._track.started
        if arrivals:
            shift = round(median((one.at - started) * RATE - one.timestamp for one in arrivals))
            decoder: Any = av.CodecContext.create("libopus", "r")
            decoder.sample_rate, decoder.layout, decoder.format = RATE, "mono", "s16"
            for one in sorted(arrivals, key=lambda one: one.timestamp):
                at = one.timestamp + shift
                for frame in decoder.decode(av.Packet(one.payload)):
                    pcm = frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0]
                    first, last = max(at, 0), min(at + pcm.size, agent.size)
                    if first < last:
                        agent[first:last] = pcm[first - at : last - at] / np.float32(32767)
                    at += pcm.size
        events = [ChannelEvent(round((at - started) * RATE), json.loads(body)) for at, body in self._messages]
        return Recording(mic, agent, tuple(events))

    async def until(self, met: Callable[[Recording], bool], what: str, limit_s: float = 30.0) -> Recording:
        """Wait until ``met`` says so of the recording so far. Raises ``AssertionError`` if it never does."""
        deadline = time.monotonic() + limit_s
        while not met(recording := self.recording()):
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {limit_s} s: {what}; agent heard in {recording.replies()}, "
                                     f"events {[event.type for event in recording.events]}")
            await asyncio.sleep(0.3)
        return recording

    async def close(self) -> None:
        """Hang up by closing the connection."""
        await self._peer.close()


def _keep(receiver: RTCRtpReceiver, arrivals: list[Arrival]) -> None:
    """Take packets as they come instead of through the stock jitter buffer and decoder."""
    statistics: dict[int, StreamStatistics] = receiver._RTCRtpReceiver__remote_streams  # type: ignore[attr-defined]
    first: list[int] = []

    async def take(packet: RtpPacket, arrival_time_ms: int) -> None:
        # Without these the server would get no receiver reports.
        statistics.setdefault(packet.ssrc, StreamStatistics(RATE)).add(packet)
        if not first:
            first.append(packet.timestamp)
        # RFC 3550: timestamps start anywhere and wrap at 32 bits.
        timestamp = (packet.timestamp - first[0] + (1 << 31)) % (1 << 32) - (1 << 31)
        arrivals.append(Arrival(time.monotonic(), timestamp, packet.payload))

    receiver._handle_rtp_packet = take  # type: ignore[method-assign]


@asynccontextmanager
async def peer_call(
    url: str,
    microphone: Microphone,
    network: ImpairedNetwork | None = None,
    packets: list[bytes] | None = None,
) -> AsyncIterator[PeerCall]:
    """Call the server at ``url``; ``packets`` saves encoding the same microphone again.

    Raises :class:`RefusedError` for any answer but 201.
    """
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    track = _MicrophoneTrack(packets or encode(microphone.sound()))
    call = PeerCall(peer, track, microphone)
    connected = asyncio.Event()

    @peer.on("connectionstatechange")
    def on_change() -> None:
        if peer.connectionState in ("connected", "failed", "closed"):
            connected.set()

    try:
        sender = peer.addTransceiver(track, direction="sendrecv")
        _keep(sender.receiver, call.arrivals)
        await peer.setLocalDescription(await peer.createOffer())
        offer = peer.localDescription.sdp
        if network is not None:
            offer = await network.offer(offer)
        async with aiohttp.ClientSession() as http, http.post(
            f"{url}/v1/realtime/calls", data=offer, headers={"Content-Type": "application/sdp"},
        ) as response:
            answer = await response.text()
            if response.status != 201:
                raise RefusedError(response.status, answer)
            call.location = response.headers.get("Location", "")
        if network is not None:
            answer = await network.answer(answer)
        await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await asyncio.wait_for(connected.wait(), 15)
        if peer.connectionState != "connected":
            raise ConnectionError(f"the call's connection is {peer.connectionState}")
        yield call
    finally:
        await call.close()
