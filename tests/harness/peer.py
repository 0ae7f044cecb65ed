"""A caller without a browser: an aiortc peer that speaks when told to and keeps every packet it gets.

Cheaper than Chromium (no rendering, no echo canceller), so many fit on one machine; what was received is
kept packet by packet and decoded afterwards.
"""

from __future__ import annotations

import asyncio
import fractions
import json
import time
from collections import deque
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
from tests.harness.microphone import Microphone, speak
from tests.harness.recording import ChannelEvent, Recording, Track
from tests.harness.sound import RATE, Sound, Span, to_pcm

FRAME = RATE // 50
"""Samples in a packet of 20 ms."""
OVERTAKEN = RATE // 5
"""Samples within which a late packet is still waited for: more than any jitter used here."""
LATELY = 500
"""Packets over which the time on the way is taken."""
ECHO_DELAY_FRAMES = 3
"""How long the agent's voice takes from the loudspeaker into the microphone here: 60 ms, as in a browser."""


class Encoder:
    """Opus packets of 20 ms with in-band FEC for 10 % loss, mono, 32 kb/s: what a browser's sender makes."""

    def __init__(self) -> None:
        self._codec: Any = av.CodecContext.create("libopus", "w")
        self._codec.sample_rate, self._codec.layout, self._codec.format = RATE, "mono", "s16"
        self._codec.bit_rate = 32_000
        self._codec.options = {"application": "voip", "frame_duration": "20", "fec": "1", "packet_loss": "10"}
        self._pts = 0

    def encode(self, sound: Sound) -> bytes:
        """The packet for one frame of ``FRAME`` samples."""
        frame = av.AudioFrame.from_ndarray(to_pcm(sound)[None, :], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._pts, fractions.Fraction(1, RATE)
        self._pts += FRAME
        packet, = self._codec.encode(frame)
        return bytes(packet)


class Decoder:
    """Opus packets to 48 kHz mono."""

    def __init__(self) -> None:
        self._codec: Any = av.CodecContext.create("libopus", "r")
        self._codec.sample_rate, self._codec.layout, self._codec.format = RATE, "mono", "s16"

    def decode(self, payload: bytes) -> Sound:
        """The samples of one packet."""
        pieces = [frame.to_ndarray().reshape(-1, len(frame.layout.channels))[:, 0] / np.float32(32767)
                  for frame in self._codec.decode(av.Packet(payload))]
        return np.concatenate(pieces).astype(np.float32) if pieces else np.zeros(0, np.float32)


def encode(microphone: Microphone) -> list[bytes]:
    """A whole timeline as packets, the last of them silence."""
    encoder = Encoder()
    return [encoder.encode(microphone.read(start, start + FRAME))
            for start in range(0, microphone.length + 10 * FRAME, FRAME)]


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


class _Mouth(MediaStreamTrack):
    """Sends the microphone in real time: ready packets (the last for ever), or each frame as it comes."""

    kind = "audio"

    def __init__(self, microphone: Microphone, packets: list[bytes] | None) -> None:
        super().__init__()
        self.started = 0.0
        self.sent = 0
        """Samples sent so far."""
        self.echo: deque[Sound] = deque([np.zeros(FRAME, np.float32)] * ECHO_DELAY_FRAMES, maxlen=50)
        self._microphone = microphone
        self._packets = packets
        self._encoder = Encoder()

    async def recv(self) -> Any:
        if not self.started:
            self.started = time.monotonic()
        await asyncio.sleep(self.started + self.sent / RATE - time.monotonic())
        if self._packets is not None:
            payload = self._packets[min(self.sent // FRAME, len(self._packets) - 1)]
        else:
            frame = self._microphone.read(self.sent, self.sent + FRAME)
            if self.echo:
                frame = frame + self.echo.popleft()
            payload = self._encoder.encode(frame)
        packet = av.Packet(payload)
        packet.pts, packet.time_base = self.sent, fractions.Fraction(1, RATE)
        self.sent += FRAME
        return packet


class PeerCall:
    """One call; its clock is the samples its microphone has sent."""

    def __init__(self, peer: RTCPeerConnection, mouth: _Mouth, microphone: Microphone) -> None:
        self.arrivals: list[Arrival] = []
        self.location = ""
        """Where the call lives on the server (the answer's Location)."""
        self.microphone = microphone
        self._peer = peer
        self._mouth = mouth
        self._messages: list[tuple[float, str]] = []
        self._decoder = Decoder()
        self._track = Track()
        self._seen = 0
        self.channel = peer.createDataChannel("oai-events")
        self.channel.on("message", lambda data: self._messages.append((time.monotonic(), str(data))))

    @property
    def samples(self) -> int:
        """Samples the microphone has sent by now."""
        return self._mouth.sent

    async def say(self, text: str, voice: str | None = None) -> Span:
        """Speak from now on; returns which samples of the call's clock that takes."""
        await asyncio.to_thread(speak, text, voice or self.microphone.voice)  # the microphone must not wait for it
        # The frame being sent right now cannot be changed any more.
        self.microphone.pause_until(self.samples + FRAME).say(text, voice)
        return self.microphone.utterances[-1].span

    def send(self, body: dict[str, Any]) -> None:
        """Send a message on the data channel."""
        self.channel.send(json.dumps(body))

    def recording(self) -> Recording:
        """Both directions, up to the last packets that may still be overtaken.

        The agent's track lies where the RTP timestamps put it, shifted by the median time on the way: what a
        receiver without any buffer would play. Lost packets are silence.
        """
        started, arrivals = self._mouth.started, list(self.arrivals)
        if not arrivals:
            return Recording(np.zeros(0, np.float32), np.zeros(0, np.float32))
        settled = max(one.timestamp for one in arrivals[self._seen :] or arrivals[-1:]) - OVERTAKEN
        for one in sorted(arrivals[self._seen :], key=lambda one: one.timestamp):
            if self._track.end <= one.timestamp <= settled:
                self._track.put(one.timestamp, self._decoder.decode(one.payload))
        while self._seen < len(arrivals) and arrivals[self._seen].timestamp <= settled:
            self._seen += 1
        shift = round(median((one.at - started) * RATE - one.timestamp for one in arrivals[-LATELY:]))
        samples = max(settled + shift, 0)
        agent = self._track.read(-shift, samples - shift)
        events = [ChannelEvent(round((at - started) * RATE), json.loads(body)) for at, body in self._messages]
        return Recording(self.microphone.read(0, samples), agent, tuple(events))

    async def until(self, met: Callable[[Recording], bool], what: str, limit_s: float = 30.0) -> Recording:
        """Wait until ``met`` says so of the recording so far. Raises ``AssertionError`` if it never does."""

        def look() -> tuple[Recording, bool]:
            recording = self.recording()
            return recording, met(recording)

        deadline = time.monotonic() + limit_s
        while True:
            # In a thread: the microphone must not stumble while the recording is made.
            recording, enough = await asyncio.to_thread(look)
            if enough:
                return recording
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {limit_s} s: {what}; agent heard in {recording.replies()}, "
                                     f"events {[event.type for event in recording.events]}")
            await asyncio.sleep(0.2)

    async def until_answered(self, after: int, quiet_s: float = 1.5, limit_s: float = 40.0) -> Recording:
        """Wait until the agent was heard after sample ``after`` and then was quiet for ``quiet_s``."""
        return await self.until(lambda recording: recording.answered(after, quiet_s),
                                f"an answer after sample {after}", limit_s)

    async def close(self) -> None:
        """Hang up by closing the connection."""
        await self._peer.close()


def _keep(receiver: RTCRtpReceiver, call: PeerCall, mouth: _Mouth, loudspeaker: float) -> None:
    """Take packets as they come instead of through the stock jitter buffer and decoder."""
    statistics: dict[int, StreamStatistics] = receiver._RTCRtpReceiver__remote_streams  # type: ignore[attr-defined]
    first: list[int] = []
    decoder = Decoder()

    async def take(packet: RtpPacket, arrival_time_ms: int) -> None:
        # Without these the server would get no receiver reports.
        statistics.setdefault(packet.ssrc, StreamStatistics(RATE)).add(packet)
        if not first:
            first.append(packet.timestamp)
        # RFC 3550: timestamps start anywhere and wrap at 32 bits.
        timestamp = (packet.timestamp - first[0] + (1 << 31)) % (1 << 32) - (1 << 31)
        call.arrivals.append(Arrival(time.monotonic(), timestamp, packet.payload))
        if loudspeaker:
            mouth.echo.append(decoder.decode(packet.payload)[:FRAME] * np.float32(loudspeaker))

    receiver._handle_rtp_packet = take  # type: ignore[method-assign]


async def _ask(url: str, offer: str, patience_s: float) -> tuple[str, str]:
    """Post an offer, again as long as there is a place in the queue; returns the answer and its Location."""
    headers = {"Content-Type": "application/sdp"}
    deadline = time.monotonic() + patience_s
    async with aiohttp.ClientSession() as http:
        while True:
            async with http.post(f"{url}/v1/realtime/calls", data=offer, headers=headers) as response:
                body = await response.text()
                if response.status == 201:
                    return body, response.headers.get("Location", "")
            queue = json.loads(body).get("queue")
            if queue is None or time.monotonic() > deadline:
                raise RefusedError(response.status, body)
            headers["X-Duologue-Ticket"] = queue["ticket"]
            await asyncio.sleep(0.5)


@asynccontextmanager
async def peer_call(
    url: str,
    microphone: Microphone,
    network: ImpairedNetwork | None = None,
    *,
    packets: list[bytes] | None = None,
    loudspeaker: float = 0.0,
    patience_s: float = 0.0,
) -> AsyncIterator[PeerCall]:
    """Call the server at ``url``.

    ``packets`` (of :func:`encode`) saves encoding the same microphone for many calls; such a call cannot
    ``say`` anything more. ``loudspeaker`` is the gain with which the agent's voice gets back into the
    microphone. A place in the queue is kept for ``patience_s``. Raises :class:`RefusedError` for any other
    answer than 201.
    """
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    mouth = _Mouth(microphone, packets)
    call = PeerCall(peer, mouth, microphone)
    connected = asyncio.Event()

    @peer.on("connectionstatechange")
    def on_change() -> None:
        if peer.connectionState in ("connected", "failed", "closed"):
            connected.set()

    try:
        sender = peer.addTransceiver(mouth, direction="sendrecv")
        _keep(sender.receiver, call, mouth, loudspeaker)
        await peer.setLocalDescription(await peer.createOffer())
        offer = peer.localDescription.sdp
        if network is not None:
            offer = network.offer(offer)
        answer, call.location = await _ask(url, offer, patience_s)
        if network is not None:
            answer = await network.answer(answer)
        await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await asyncio.wait_for(connected.wait(), 15)
        if peer.connectionState != "connected":
            raise ConnectionError(f"the call's connection is {peer.connectionState}")
        yield call
    finally:
        await call.close()
