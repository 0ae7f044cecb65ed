"""A call over a WebSocket: events and audio both ways, on one clock of ours.

The reply is sent at the pace at which it is heard, a little ahead. So it can be taken back, and what the caller has
heard of it is known here: no more than was sent, and no more than time has passed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
from aiohttp import WSCloseCode, WSMsgType, web

from duologue.agent.logs import EventLog
from duologue.agent.realtime import events as ev
from duologue.agent.realtime.formats import BadFormatError, pcm_at
from duologue.agent.realtime.parse import BadEventError, parse_audio
from duologue.agent.transports.base import FRAME_MS, EventMedia
from duologue.agent.transports.media_clock import MediaClock, Tick
from duologue.agent.transports.websocket.coding import AudioReader, AudioWriter, BadAudioError
from duologue.agent.transports.websocket.intake import Intake
from duologue.agent.transports.websocket.outbox import Outbox
from duologue.agent.transports.websocket.pace import Pace
from duologue.engine import INPUT_RATE, Pcm
from duologue.metrics import DROPS

HEARTBEAT_S = 20.0
"""Seconds between pings; a client that does not answer within half of it is lost."""

MAX_MESSAGE = 1 << 20
"""Bytes of a message (16 s of audio at 24 kHz); a longer one ends the call, as the protocol says (close code 1009)."""

CLOSE_S = 2.0
"""Seconds that the last messages and the closing handshake may take."""

_ABOUT_WHAT_WAS_SENT = ("input_audio_buffer.commit", "response.create")
"""Events that mean all audio before them, and so wait until it has been heard."""

_FRAME = INPUT_RATE * FRAME_MS // 1000

_log = EventLog(__name__)


class WebSocketTransport:
    """One client. ``run`` reads what it sends until it is gone; ``gone`` of the call is called exactly once."""

    def __init__(self, call_id: str, socket: web.WebSocketResponse, drop: Callable[[], None],
                 call: EventMedia) -> None:
        """``socket`` has been upgraded; ``drop`` drops its connection at once."""
        self._log = _log.of(call_id)
        self._call_id = call_id
        self._socket = socket
        self._drop = drop
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._outbox = Outbox(socket)
        self._intake = Intake(self._loop.time())
        self._reader = AudioReader(call.formats[0])
        self._writer = AudioWriter(call.output_rate, call.formats[1])
        self._reply = "", ""
        """The ids of the response and the item whose audio is being sent."""
        self._unsent: list[Pcm] = []
        self._pace = Pace(call, self._say)
        self._own_events = 0
        self._heard = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._ended = False
        self._reason = ""

    @property
    def name(self) -> str:
        """``websocket``."""
        return "websocket"

    # --- life -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry the call until either side ends it."""
        self._sending = asyncio.ensure_future(self._send_all())
        self._log.info("connected")
        try:
            self._call.connected(voice_in_events=True)
            self._schedule(MediaClock(self._loop.time()))
            await self._read()
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._fault(fault)
        finally:
            self._end("hung up")
            await asyncio.wait({self._sending})

    async def _send_all(self) -> None:
        try:
            await self._outbox.run()
            await self._socket.close(code=WSCloseCode.OK, message=self._reason.encode())
        except ConnectionError:
            self._end("lost")
        except Exception as fault:
            self._fault(fault)

    async def close(self) -> None:
        """Send what is left, say goodbye and free everything; idempotent."""
        self._end("closed")
        if self._sending is not None:
            _done, late = await asyncio.wait({self._sending}, timeout=CLOSE_S)
            if late:
                self._sending.cancel()
                self._drop()

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        self._reason = reason
        if self._timer is not None:
            self._timer.cancel()
        self._heard.set()
        self._outbox.finish()
        self._log.info("ended", reason=reason, close_code=self._socket.close_code)
        try:
            self._call.gone(reason)
        except Exception as fault:
            self._log.error("gone_failed", fault=fault)

    def _fault(self, fault: Exception) -> None:
        if not self._ended:
            self._log.error("media_fault", fault=fault)
        self._end("media fault")

    # --- from the client ------------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                await self._take(message.data)
            elif message.type is WSMsgType.BINARY:
                self._complain("bad_event", "Send events as text; audio goes into input_audio_buffer.append.")
            if self._ended:
                return

    async def _take(self, message: str) -> None:
        kind, audio = "", None
        try:
            kind, audio = parse_audio(message)
            if audio is not None:
                self._intake.put(self._reader_for(audio.sample_rate_hz).read(audio.audio))
                self._hear()
                await self._until(lambda: not self._intake.full)
                return
        except BadEventError as bad:
            self._complain(bad.code, str(bad), bad.event_id)
            return
        except (BadAudioError, BadFormatError) as bad:
            self._complain("invalid_audio", str(bad), audio.event_id if audio else None)
            return
        if kind == "input_audio_buffer.clear":
            self._intake.drop()
        elif kind in _ABOUT_WHAT_WAS_SENT:
            await self._until(lambda: not self._intake.waiting)
        self._call.receive(message)
        if self._call.silence_due:
            self._call.feed(np.zeros(self._call.silence_due, np.int16))

    async def _until(self, heard: Callable[[], bool]) -> None:
        """Read no more until what was sent has been heard: so a client that is too fast is held back."""
        while not heard() and not self._ended:
            self._heard.clear()
            await self._heard.wait()

    def _reader_for(self, rate: int | None) -> AudioReader:
        """What reads the client's audio; ``rate`` is what it says of this piece."""
        wire = self._call.formats[0] if rate is None else pcm_at(rate)
        if wire != self._reader.wire:
            self._reader = AudioReader(wire)
        return self._reader

    def _complain(self, code: str, message: str, event_id: str | None = None) -> None:
        self._put(ev.ErrorEvent(error=ev.ErrorBody(type="invalid_request_error", code=code, message=message,
                                                   event_id=event_id)))

    # --- the clock ------------------------------------------------------------------------------------------

    def _schedule(self, media: MediaClock) -> None:
        tick = media.next(self._loop.time())
        self._timer = self._loop.call_at(tick.due, self._tick, media, tick)

    def _tick(self, media: MediaClock, tick: Tick) -> None:
        """One clock for both ways: let time pass for what comes in, and send what is due."""
        try:
            self._pass_time(1 + tick.skipped)
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._fault(fault)
        if not self._ended:
            self._schedule(media)

    def _pass_time(self, frames: int) -> None:
        self._hear()
        if self._call.awaits_time and self._intake.quiet(self._loop.time()):
            self._call.feed(np.zeros(min(frames * _FRAME, INPUT_RATE), np.int16))
        self._pace.pass_time(frames)
        self._send_audio()

    def _hear(self) -> None:
        pcm = self._intake.get(self._loop.time())
        if pcm.size:
            self._call.feed(pcm)
        self._heard.set()

    # --- to the client --------------------------------------------------------------------------------------

    def send(self, message: str) -> None:
        """Send an event, after the audio that was given before it."""
        self._send_audio()
        if not self._outbox.put(message):
            DROPS.labels(what="event", reason="slow_reader").inc()
            self._end("slow reader")

    def _say(self, response_id: str, item_id: str, pcm: Pcm) -> None:
        """Take the next samples of a reply."""
        if (response_id, item_id) != self._reply or self._writer.wire != self._call.formats[1]:
            self._send_audio()
            self._reply = response_id, item_id
            self._writer = AudioWriter(self._call.output_rate, self._call.formats[1])
        self._unsent.append(pcm)

    def _send_audio(self) -> None:
        """Make one event of what was taken."""
        if self._unsent:
            pcm = np.concatenate(self._unsent)
            self._unsent.clear()
            self._put(ev.AudioDelta(response_id=self._reply[0], item_id=self._reply[1],
                                    delta=self._writer.write(pcm)))

    def _put(self, event: ev.ServerEvent) -> None:
        """Send an event of the transport's own, which the call does not number."""
        self._own_events += 1
        numbered = event.model_copy(update={"event_id": f"event_{self._call_id}_m{self._own_events}"})
        self.send(numbered.model_dump_json(exclude_none=True))
