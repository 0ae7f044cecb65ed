"""A browser's side of a call, made of aiortc, and a call that records what its transport does with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from aiortc import RTCConfiguration, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av.packet import Packet
from av.stream import Stream

from duologue.agent.media.opus import OpusEncoder
from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.webrtc_receiver import PacketReceiver, install
from duologue.engine import Pcm

RATE = 16_000
FRAME = RATE // 50


def voiced(seconds: float, seed: int = 1) -> Pcm:
    """Noise in slow swells: no two stretches of it alike, so that its place in time can be found."""
    random = np.random.default_rng(seed)
    count = int(seconds * RATE)
    noise = np.convolve(random.standard_normal(count + 8), np.ones(8) / 8, "valid")[:count]
    knots = np.arange(0, count + 800, 800)
    swell = np.interp(np.arange(count), knots, random.uniform(0.1, 1, knots.size))
    pcm: Pcm = (noise * swell * 12_000).astype(np.int16)
    return pcm


def frames_of(pcm: Pcm) -> list[Pcm]:
    return [pcm[at:at + FRAME] for at in range(0, pcm.size - FRAME + 1, FRAME)]


def encoded(pcm: Pcm) -> list[bytes]:
    encoder = OpusEncoder(RATE)
    return [encoder.encode(frame) for frame in frames_of(pcm)]


def lag(heard: Pcm, source: Pcm, start: int, length: int, most: int = 800) -> int:
    """By how many samples ``heard`` is behind ``source``, judged by samples [start, start + length) of it."""
    piece = source[start:start + length].astype(np.float64)
    stretch = heard[start:start + length + most].astype(np.float64)
    likeness = np.correlate(stretch, piece, "valid")
    return int(np.argmax(likeness))


class Recorder:
    """Something whose changes can be waited for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def until(self, met: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not met():
                self._changed.clear()
                await self._changed.wait()


class RecordingCall(Recorder):
    """A call that keeps what it was given, and says ``frames`` once ``speaking`` is set, then silence."""

    def __init__(self, frames: Sequence[Pcm] = ()) -> None:
        super().__init__()
        self.output_rate = RATE
        self.frames = list(frames)
        self.speaking = False
        self.pulled: list[Pcm] = []
        self.fed: list[Pcm] = []
        self.concealed = 0
        self.messages: list[str] = []
        self.keys: list[str] = []
        self.connections = 0
        self.reasons: list[str] = []

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        self.fed.append(pcm)
        self.concealed += concealed
        self.changed()

    def pull(self) -> Pcm:
        frame = self.frames.pop(0) if self.speaking and self.frames else np.zeros(FRAME, np.int16)
        self.pulled.append(frame)
        return frame

    def receive(self, message: str) -> None:
        self.messages.append(message)
        self.changed()

    def dtmf(self, key: str) -> None:
        self.keys.append(key)
        self.changed()

    def connected(self) -> None:
        self.connections += 1
        self.changed()

    def gone(self, reason: str) -> None:
        self.reasons.append(reason)
        self.changed()

    @property
    def heard(self) -> Pcm:
        return np.concatenate(self.fed) if self.fed else np.zeros(0, np.int16)


class PacketTrack(MediaStreamTrack):
    """Sends ``packets`` 20 ms apart, from the moment ``start`` is set, then nothing."""

    kind = "audio"

    def __init__(self, packets: Sequence[bytes]) -> None:
        super().__init__()
        self.start = asyncio.Event()
        self.sent = asyncio.Event()
        self._packets = list(packets)
        self._index = 0
        self._started = 0.0

    async def recv(self) -> Packet[Stream]:
        await self.start.wait()
        if self._index == len(self._packets):
            self.sent.set()
            await asyncio.Event().wait()
        if self.readyState != "live":
            raise MediaStreamError
        loop = asyncio.get_running_loop()
        if self._index == 0:
            self._started = loop.time()
        await asyncio.sleep(self._started + 0.02 * self._index - loop.time())
        packet: Packet[Stream] = Packet(self._packets[self._index])
        packet.pts = self._index * 960
        packet.time_base = Fraction(1, 48_000)
        self._index += 1
        return packet


Fate = Callable[[int], int | None]
"""What becomes of the n-th RTP packet: None, lost; k, sent after k later ones."""


class Peer(Recorder):
    """The browser: offers, takes the answer, sends ``packets``, keeps every RTP packet it gets."""

    def __init__(self, packets: Sequence[bytes] = (), *, channel: str | None = "oai-events",
                 fate: Fate = lambda index: 0) -> None:
        super().__init__()
        self.pc = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self.track = PacketTrack(packets)
        self.got: list[RtpPacket] = []
        self.channel: RTCDataChannel | None = None
        self.messages: list[str] = []
        transceiver = self.pc.addTransceiver(self.track, direction="sendrecv")
        self.receiver = PacketReceiver(transceiver.receiver.transport, self._take, self._fault)
        install(self.receiver, transceiver)
        self._fate = fate
        self._count = 0
        self._held: list[tuple[int, bytes]] = []
        if channel is not None:
            self.channel = self.pc.createDataChannel(channel)
            self.channel.on("message", self._message)

    async def offer(self) -> str:
        await self.pc.setLocalDescription(await self.pc.createOffer())
        return self.pc.localDescription.sdp

    async def answered(self, sdp: str) -> None:
        await self.pc.setRemoteDescription(RTCSessionDescription(sdp, "answer"))
        dtls = self.receiver.transport
        send = dtls._send_rtp

        async def impaired(data: bytes) -> None:
            if 192 <= data[1] <= 223:  # RTCP (RFC 5761 section 4)
                await send(data)
                return
            fate = self._fate(self._count)
            self._count += 1
            if fate == 0:
                await send(data)
            elif fate is not None:
                self._held.append((self._count + fate, data))
            for item in [item for item in self._held if item[0] <= self._count]:
                self._held.remove(item)
                await send(item[1])

        dtls._send_rtp = impaired  # type: ignore[method-assign]

    def vanish(self) -> None:
        """Go without a word: nothing is sent any more, not even STUN."""
        for protocol in self.receiver.transport.transport._connection._protocols:
            protocol.transport.sendto = lambda data, addr=None: None  # type: ignore[method-assign]

    async def close(self) -> None:
        await self.pc.close()

    async def packets(self, count: int) -> list[RtpPacket]:
        """Wait for ``count`` packets."""
        await self.until(lambda: len(self.got) >= count)
        return self.got[:count]

    def _take(self, packet: RtpPacket) -> None:
        self.got.append(packet)
        self.changed()

    def _message(self, message: str) -> None:
        self.messages.append(message)
        self.changed()

    def _fault(self, fault: Exception) -> None:
        raise fault
