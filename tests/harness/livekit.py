"""The real LiveKit server as a process, and a caller who joins its rooms with LiveKit's own SDK."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import yaml
from livekit import api, rtc
from livekit.protocol.agent_dispatch import RoomAgentDispatch

from tests.harness.go_tool import go_tool
from tests.harness.microphone import Microphone, speak
from tests.harness.recording import ChannelEvent, Recording, Track
from tests.harness.server import LAST_WORDS, free_port
from tests.harness.severed import Line, tcp_relay, udp_relay
from tests.harness.sound import RATE, Span, from_pcm, to_pcm

KEY, SECRET = "devkey", "secret" * 6
"""The SDK warns of secrets under 32 bytes."""

HOST = "127.0.0.1"
RELAY_HOST = "127.0.0.2"
"""Also this machine: all of 127.0.0.0/8 is."""

EVENTS = "oai-events"
START_LIMIT_S = 20.0
_FRAME = RATE // 100
"""Samples a source without a queue takes at a time."""


def free_udp_port() -> int:
    """A UDP port of 127.0.0.1 that nobody uses at the moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_config(port: int, udp_port: int, media_ip: str = HOST) -> dict[str, Any]:
    """A server on loopback alone, whose rooms close soon after the last participant has left.

    Clients are told to send media to ``media_ip``; where that is not the server's own address something has to relay
    them, and the server looks for no other way itself (ICE lite).
    """
    return {
        "port": port,
        "bind_addresses": [HOST],
        "rtc": {"node_ip": media_ip, "udp_port": udp_port, "tcp_port": 0, "use_external_ip": False,
                "use_ice_lite": media_ip != HOST, "enable_loopback_candidate": True,
                "interfaces": {"includes": ["lo"]}, "ips": {"includes": [f"{HOST}/32"]}},
        "keys": {KEY: SECRET},
        "logging": {"level": "info", "json": True},
        "room": {"auto_create": True, "empty_timeout": 30, "departure_timeout": 5},
    }


class LiveKitProcess:
    """A LiveKit server that can be killed, started again on the same ports, and held."""

    def __init__(self, folder: Path, config: Path, port: int) -> None:
        self.port = port
        self.url = f"ws://127.0.0.1:{port}"
        self.log_path = folder / f"livekit-{port}.log"
        self._config = config
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it answers. Raises ``RuntimeError`` with its last words if it does not."""
        with self.log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                go_tool("livekit-server"), "--config", str(self._config), stdout=log, stderr=log,
                stdin=asyncio.subprocess.DEVNULL)
        deadline = time.monotonic() + START_LIMIT_S
        while not await self._answers():
            if self._process.returncode is not None or time.monotonic() > deadline:
                await self.kill()
                raise RuntimeError(f"the LiveKit server did not start:\n{self.log_path.read_text()[-LAST_WORDS:]}")
            await asyncio.sleep(0.02)

    async def _answers(self) -> bool:
        try:
            async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{self.port}/") as response:
                return response.status == 200
        except aiohttp.ClientConnectionError:
            return False

    async def kill(self) -> None:
        """End it without a word to its clients; SIGTERM would wait for them."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def shut_down(self) -> None:
        """End it in order: its clients are told. The first SIGTERM alone would wait until they have left."""
        assert self._process is not None
        self._process.terminate()
        await asyncio.sleep(0.2)
        if self._process.returncode is None:
            self._process.terminate()
        await asyncio.wait_for(self._process.wait(), START_LIMIT_S)

    def hold(self) -> None:
        """Stop it where it stands: nothing goes through it any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def release(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def api(self) -> api.LiveKitAPI:
        """A client of its API."""
        return api.LiveKitAPI(self.url, KEY, SECRET)

    def token(self, room: str, identity: str, *, dispatch: RoomAgentDispatch | None = None,
              phone: bool = False, agent: bool = False) -> str:
        """A token with which ``identity`` may join ``room``, which is created with ``dispatch`` if it is new.

        A ``phone`` is what livekit-sip would join as: it rings until its attributes say otherwise. An ``agent`` is what
        a job of a worker joins as.
        """
        token = (api.AccessToken(KEY, SECRET).with_identity(identity)
                 .with_grants(api.VideoGrants(room_join=True, room=room, can_update_own_metadata=True)))
        if phone:
            token = token.with_kind("sip").with_attributes({"sip.callStatus": "ringing"})
        if agent:
            token = token.with_kind("agent")
        if dispatch is not None:
            token = token.with_room_config(api.RoomConfiguration(agents=[dispatch]))
        return token.to_jwt()


@asynccontextmanager
async def livekit_server(folder: Path) -> AsyncIterator[LiveKitProcess]:
    """A LiveKit server on free ports."""
    port = free_port()
    async with _running(folder, port, server_config(port, free_udp_port())) as server:
        yield server


@asynccontextmanager
async def livekit_server_behind(folder: Path, line: Line) -> AsyncIterator[LiveKitProcess]:
    """A LiveKit server that is reached through ``line`` only, by its clients' signalling and by all media."""
    port, udp_port = free_port(), free_udp_port()
    with udp_relay(line, (HOST, udp_port), (RELAY_HOST, udp_port)):
        async with (
            _running(folder, port, server_config(port, udp_port, RELAY_HOST)) as server,
            tcp_relay(line, lambda: (HOST, port)) as (host, relayed),
        ):
            server.url = f"ws://{host}:{relayed}"
            yield server


@asynccontextmanager
async def _running(folder: Path, port: int, config: dict[str, Any]) -> AsyncIterator[LiveKitProcess]:
    path = folder / f"livekit-{port}.yaml"
    path.write_text(yaml.safe_dump(config))
    server = LiveKitProcess(folder, path, port)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@dataclass(slots=True)
class CaptionStream:
    """One text stream of captions; ``final`` as its attributes said when it was closed."""

    at: int
    speaker: str
    segment: str
    text: str = ""
    final: bool = False
    closed: bool = False


class RoomCaller:
    """A participant who speaks and records; its clock is the samples its microphone has given."""

    def __init__(self, microphone: Microphone) -> None:
        self.microphone = microphone
        self.room = rtc.Room()
        self.captions: list[CaptionStream] = []
        self.states: list[tuple[int, str]] = []
        """Changes of the agent's ``lk.agent.state``, with their samples."""
        self.happened: list[str] = []
        """Names of what befell the room itself: reconnecting, reconnected, disconnected."""
        self.disconnected = asyncio.Event()
        self.samples = 0
        self._events: list[ChannelEvent] = []
        self._track = Track()
        self._started = 0.0
        self._source = rtc.AudioSource(RATE, 1, queue_size_ms=0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stream: rtc.AudioStream | None = None
        self._listening: asyncio.Task[None] | None = None
        room = self.room
        room.on("track_subscribed", self._on_track)
        room.on("data_received", self._on_data)
        room.on("participant_attributes_changed", self._on_attributes)
        room.on("disconnected", self._on_disconnected)
        for name in ("reconnecting", "reconnected"):
            room.on(name, lambda name=name: self.happened.append(name))
        room.register_text_stream_handler("lk.transcription", self._on_caption)

    # --- what it does --------------------------------------------------------------------------------------

    async def join(self, url: str, token: str) -> None:
        """Enter the room and let the microphone run."""
        await self.room.connect(url, token)
        track = rtc.LocalAudioTrack.create_audio_track("microphone", self._source)
        await self.room.local_participant.publish_track(
            track, rtc.TrackPublishOptions(source=rtc.TrackSource.SOURCE_MICROPHONE, dtx=False))
        self._started = time.monotonic()
        self._spawn(self._speak())

    async def _speak(self) -> None:
        while True:
            await asyncio.sleep(self._started + self.samples / RATE - time.monotonic())
            piece = to_pcm(self.microphone.read(self.samples, self.samples + _FRAME))
            self.samples += _FRAME
            await self._source.capture_frame(rtc.AudioFrame(piece.tobytes(), RATE, 1, _FRAME))

    async def say(self, text: str, voice: str | None = None) -> Span:
        """Speak from now on; returns which samples of the caller's clock that takes."""
        await asyncio.to_thread(speak, text, voice or self.microphone.voice)
        self.microphone.pause_until(self.samples + 2 * _FRAME).say(text, voice)
        return self.microphone.utterances[-1].span

    async def send(self, body: dict[str, Any]) -> None:
        """Send a Realtime event."""
        await self.room.local_participant.publish_data(json.dumps(body), topic=EVENTS)

    async def leave(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.room.disconnect()
        if self._stream is not None:
            await self._stream.aclose()
        await self._source.aclose()

    # --- what it hears -------------------------------------------------------------------------------------

    def _now(self) -> int:
        return round((time.monotonic() - self._started) * RATE) if self._started else 0

    def _spawn(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _on_track(self, track: rtc.Track, _publication: object, guest: rtc.RemoteParticipant) -> None:
        if guest.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT and isinstance(track, rtc.RemoteAudioTrack):
            if self._listening is not None:
                self._listening.cancel()
            self._listening = self._spawn(self._listen(track))

    async def _listen(self, track: rtc.RemoteAudioTrack) -> None:
        stream = self._stream = rtc.AudioStream.from_track(track=track, sample_rate=RATE, num_channels=1,
                                                           frame_size_ms=20)
        place = None
        async for event in stream:
            piece = from_pcm(np.frombuffer(event.frame.data, np.int16))
            # A stream never pauses: where its first piece belongs, all belong, however late they are read.
            if place is None:
                place = self._now() - piece.size
            self._track.put(place, piece)
            place += piece.size

    def _on_data(self, packet: rtc.DataPacket) -> None:
        if packet.topic == EVENTS:
            self._events.append(ChannelEvent(self._now(), json.loads(packet.data)))

    def _on_attributes(self, changed: dict[str, str], guest: rtc.Participant) -> None:
        if "lk.agent.state" in changed and isinstance(guest, rtc.RemoteParticipant):
            self.states.append((self._now(), changed["lk.agent.state"]))

    def _on_disconnected(self, _reason: object) -> None:
        self.happened.append("disconnected")
        self.disconnected.set()

    def _on_caption(self, reader: rtc.TextStreamReader, identity: str) -> None:
        attributes = reader.info.attributes or {}
        caption = CaptionStream(self._now(), identity, attributes.get("lk.segment_id", ""))
        self.captions.append(caption)
        self._spawn(self._read(reader, caption))

    async def _read(self, reader: rtc.TextStreamReader, caption: CaptionStream) -> None:
        async for chunk in reader:
            caption.text += chunk
        caption.final = (reader.info.attributes or {}).get("lk.transcription_final") == "true"
        caption.closed = True

    def said_in(self, segment: str) -> str:
        """What stands of a segment: the text of its last stream."""
        return [caption for caption in self.captions if caption.segment == segment][-1].text

    def recording(self) -> Recording:
        """Both directions up to now."""
        samples = min(self._now(), self._track.end)
        return Recording(self.microphone.read(0, samples), self._track.read(0, samples), tuple(self._events))

    async def until(self, met: Callable[[Recording], bool], what: str, limit_s: float = 30.0) -> Recording:
        """Wait until ``met`` says so of the recording so far. Raises ``AssertionError`` if it never does."""
        deadline = time.monotonic() + limit_s
        while True:
            recording = self.recording()
            if await asyncio.to_thread(met, recording):
                return recording
            if time.monotonic() > deadline:
                events = [event.type for event in recording.events if event.type != "duologue.decision"]
                raise AssertionError(f"not within {limit_s} s: {what}; agent heard in {recording.replies()}, "
                                     f"room {self.happened}, states {self.states}, events {events}")
            await asyncio.sleep(0.2)

    async def until_sample(self, sample: int) -> Recording:
        """Wait until so much has been recorded."""
        return await self.until(lambda recording: recording.agent.size >= sample, f"sample {sample}",
                                30.0 + sample / RATE)

    async def until_answered(self, after: int, quiet_s: float = 1.5, limit_s: float = 40.0) -> Recording:
        """Wait until the agent was heard after sample ``after`` and then was quiet for ``quiet_s``."""
        return await self.until(lambda recording: recording.answered(after, quiet_s),
                                f"an answer after sample {after}", limit_s)


@asynccontextmanager
async def room_call(server: LiveKitProcess, room: str, microphone: Microphone, *, identity: str = "caller",
                    dispatch: RoomAgentDispatch | None = None, phone: bool = False) -> AsyncIterator[RoomCaller]:
    """Join ``room`` as ``identity`` and speak."""
    caller = RoomCaller(microphone)
    await caller.join(server.url, server.token(room, identity, dispatch=dispatch, phone=phone))
    try:
        yield caller
    finally:
        await caller.leave()
