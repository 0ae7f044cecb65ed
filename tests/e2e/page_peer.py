"""A server for tests of the page alone: serves it, answers its offers, and says what the test tells it to say."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web
from aiortc import MediaStreamTrack, RTCDataChannel, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from duologue.agent.http.pages import add_routes

WEB = Path(__file__).parents[2] / "duologue" / "web"
RATE = 48_000
FRAME = RATE // 50
TONE_HZ = 440
LIMIT_S = 30.0
AUDIBLE = 50.0
"""Root mean square above which a frame is no silence, of int16 samples."""

Event = dict[str, Any]


class Tone(MediaStreamTrack):
    """The agent's voice: a steady sine of ``TONE_HZ``."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self._sent = 0
        self._start = time.monotonic()

    async def recv(self) -> AudioFrame:
        """The next 20 ms, when they are due."""
        await asyncio.sleep(max(0.0, self._start + self._sent / RATE - time.monotonic()))
        phase = 2 * np.pi * TONE_HZ * np.arange(self._sent, self._sent + FRAME) / RATE
        frame = AudioFrame.from_ndarray((8000 * np.sin(phase)).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._sent, Fraction(1, RATE)
        self._sent += FRAME
        return frame


class PeerCall:
    """The server's end of one call."""

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.peer = RTCPeerConnection()
        self.received: list[Event] = []
        """Messages the page sent on its data channel."""
        self.loudness: float = 0.0
        """Root mean square of the caller's newest 20 ms."""
        self.quiet_frames = 0
        """Frames of 20 ms in a row, up to the newest, in which the caller was not heard."""
        self.released = False
        """Whether the page gave the call back with DELETE."""
        self._changed = asyncio.Condition()
        self._channel: RTCDataChannel | None = None
        self._listening: asyncio.Task[None] | None = None

    async def answer(self, offer: str) -> str:
        """Take the page's offer and give the answer."""

        @self.peer.on("datachannel")
        def opened(channel: RTCDataChannel) -> None:
            self._channel = channel
            channel.on("message", self._take)
            self.say({"type": "session.created", "session": {"id": self.id, "model": "scripted"}})

        @self.peer.on("track")
        def heard(track: MediaStreamTrack) -> None:
            self._listening = asyncio.create_task(self._listen(track))

        await self.peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        self.peer.addTrack(Tone())
        await self.peer.setLocalDescription(await self.peer.createAnswer())
        return self.peer.localDescription.sdp

    def say(self, *events: Event) -> None:
        """Send events to the page."""
        assert self._channel is not None
        for event in events:
            self._channel.send(json.dumps(event))

    def garble(self, text: str) -> None:
        """Send text that is no event."""
        assert self._channel is not None
        self._channel.send(text)

    async def until(self, met: Callable[[PeerCall], bool], what: str) -> None:
        """Wait until ``met`` says so; raises ``TimeoutError`` naming ``what``."""
        try:
            async with asyncio.timeout(LIMIT_S), self._changed:
                await self._changed.wait_for(lambda: met(self))
        except TimeoutError:
            raise TimeoutError(f"{what}; received {self.received}, loudness {self.loudness}") from None

    def got(self, type_: str) -> list[Event]:
        """Messages of one type the page sent so far."""
        return [event for event in self.received if event["type"] == type_]

    async def note(self) -> None:
        """Wake those who wait: something changed."""
        async with self._changed:
            self._changed.notify_all()

    async def vanish(self) -> None:
        """Stop answering on the network, as a machine does that loses its power."""
        assert self.peer.sctp is not None
        await self.peer.sctp.transport.transport.stop()

    async def close(self) -> None:
        """End this side of the call."""
        await self.peer.close()
        if self._listening is not None:
            await self._listening

    async def _take(self, message: str) -> None:
        self.received.append(json.loads(message))
        await self.note()

    async def _listen(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            assert isinstance(frame, AudioFrame)
            self.loudness = float(np.sqrt(np.mean(np.square(frame.to_ndarray().astype(np.float64)))))
            self.quiet_frames = self.quiet_frames + 1 if self.loudness < AUDIBLE else 0
            await self.note()


Refusal = tuple[int, Event]


class PeerServer:
    """Serves the page as the real server does, and takes its calls, or gives it the ``refusals`` first."""

    def __init__(self) -> None:
        self.url = ""
        self.refusals: list[Refusal] = []
        """Answers for the next offers, in order; when there are none left, calls are taken."""
        self.tickets: list[str | None] = []
        """The ticket each offer came with."""
        self.calls: list[PeerCall] = []
        self._called = asyncio.Condition()

    async def call(self, count: int = 1) -> PeerCall:
        """Wait for the page's call number ``count`` to be live; gives it."""
        async with asyncio.timeout(LIMIT_S), self._called:
            await self._called.wait_for(lambda: len(self.calls) >= count)
        call = self.calls[count - 1]
        await call.until(lambda call: bool(call.got("session.update")), "the page opts in")
        return call

    async def offers(self, count: int) -> None:
        """Wait until the page has made so many offers."""
        async with asyncio.timeout(LIMIT_S), self._called:
            await self._called.wait_for(lambda: len(self.tickets) >= count)

    async def _make(self, request: web.Request) -> web.Response:
        offer = await request.text()
        assert request.content_type == "application/sdp"
        async with self._called:
            self.tickets.append(request.headers.get("X-Duologue-Ticket"))
            self._called.notify_all()
        if self.refusals:
            status, body = self.refusals.pop(0)
            return web.json_response(body, status=status)
        call = PeerCall(f"rtc_{len(self.calls)}")
        answer = await call.answer(offer)
        async with self._called:
            self.calls.append(call)
            self._called.notify_all()
        return web.Response(status=201, text=answer, content_type="application/sdp",
                            headers={"Location": f"/v1/realtime/calls/{call.id}"})

    async def _release(self, request: web.Request) -> web.Response:
        call = next(call for call in self.calls if call.id == request.match_info["id"])
        call.released = True
        await call.note()
        return web.Response(status=204)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[PeerServer]:
        """Serve on a free port of the loopback interface."""
        app = web.Application()
        app.router.add_post("/v1/realtime/calls", self._make)
        app.router.add_delete("/v1/realtime/calls/{id}", self._release)
        add_routes(app, WEB)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            yield self
        finally:
            await asyncio.gather(*(call.close() for call in self.calls))
            await runner.cleanup()


class Script:
    """The events of a conversation, in the order and with the fields of the server."""

    def __init__(self, call: PeerCall, unit_ms: int = 200) -> None:
        self._call = call
        self._unit_ms = unit_ms
        self._at = 0
        self._count = 0

    def state(self, state: str) -> None:
        """The floor changes now."""
        self._call.say({"type": "duologue.state", "state": state, "at_ms": self._at})

    def units(self, count: int, *, speech: float = 0.0, choice: str = "listen") -> None:
        """So many units pass."""
        for _ in range(count):
            self._at += self._unit_ms
            self._call.say({"type": "duologue.decision", "unit": self._at // self._unit_ms - 1, "choice": choice,
                            "yields": False, "speech": speech, "at_ms": self._at, "unit_ms": self._unit_ms})

    def caller_begins(self) -> str:
        """The caller begins to speak; gives the item."""
        self._count += 1
        item = f"item_{self._count}"
        self._call.say({"type": "input_audio_buffer.speech_started", "item_id": item, "audio_start_ms": self._at})
        return item

    def caller_partial(self, item: str, text: str) -> None:
        """The caller's words so far."""
        self._call.say({"type": "duologue.transcript.partial", "item_id": item, "text": text})

    def caller_done(self, item: str, text: str) -> None:
        """The caller's words."""
        self._call.say(
            {"type": "input_audio_buffer.speech_stopped", "item_id": item, "audio_end_ms": self._at},
            {"type": "input_audio_buffer.committed", "item_id": item},
            {"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "content_index": 0,
             "transcript": text, "usage": {"type": "duration", "seconds": 1.0}})

    def caller_says(self, text: str) -> None:
        """A whole utterance."""
        self.caller_done(self.caller_begins(), text)

    def reply_begins(self, *deltas: str) -> str:
        """A reply begins; gives its item (its response is the same with another prefix)."""
        self._count += 1
        item, response = f"item_{self._count}", f"resp_{self._count}"
        self._call.say(
            {"type": "response.created", "response": {"id": response, "status": "in_progress"}},
            {"type": "response.output_item.added", "response_id": response, "output_index": 0,
             "item": {"id": item, "type": "message", "role": "assistant", "status": "in_progress"}},
            {"type": "response.content_part.added", "response_id": response, "item_id": item,
             "part": {"type": "audio", "transcript": ""}})
        for delta in deltas:
            self.reply_goes_on(item, delta)
        return item

    def reply_goes_on(self, item: str, delta: str) -> None:
        """More of the reply's text."""
        self._call.say({"type": "response.output_audio_transcript.delta", "response_id": self._response(item),
                        "item_id": item, "delta": delta})

    def reply_done(self, item: str, text: str, status: str = "completed") -> None:
        """The reply has ended; ``text`` is what its item keeps."""
        response = self._response(item)
        self._call.say(
            {"type": "response.output_audio.done", "response_id": response, "item_id": item},
            {"type": "response.output_audio_transcript.done", "response_id": response, "item_id": item,
             "transcript": text},
            {"type": "response.done", "response": {"id": response, "status": status}})

    def reply_cut(self, item: str, text: str, heard: str) -> None:
        """The caller interrupts the reply: of ``text`` only ``heard`` was heard."""
        self.reply_done(item, heard, "cancelled")
        self._call.say(
            {"type": "output_audio_buffer.cleared", "response_id": self._response(item)},
            {"type": "conversation.item.truncated", "item_id": item, "content_index": 0, "audio_end_ms": 900},
            {"type": "duologue.reply.heard", "item_id": item, "text": text, "heard_text": heard,
             "interrupted": True})

    def latency(self, kind: str, *values: int) -> None:
        """Latencies the server measured, in ms."""
        for ms in values:
            self._call.say({"type": "duologue.latency", "kind": kind, "ms": ms})

    @staticmethod
    def _response(item: str) -> str:
        return item.replace("item_", "resp_")
