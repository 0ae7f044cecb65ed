"""What a room is told, sent in order, one thing at a time, and never waited for by the call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from livekit import rtc

from duologue.agent.logs import EventLog
from duologue.agent.transports.control_channel import LABEL, MAX_WAITING
from duologue.agent.transports.livekit.projection import AgentState, Caption, Message, Notice, Spoken, SpokenDone
from duologue.metrics import DROPS

MAX_MESSAGE = 60_000
"""Bytes of the longest message: SCTP messages of WebRTC peers may be cut off at 64 KiB (RFC 8841 section 6.1)."""

TRANSCRIPTION = "lk.transcription"
_FINAL, _SEGMENT, _TRACK = "lk.transcription_final", "lk.segment_id", "lk.transcribed_track_id"
_STATE = "lk.agent.state"

_SEND_LIMIT_S = 5.0
"""How long one thing may take: while the room is away, the SDK keeps what is sent until it is back."""
_LAST_WORDS_S = 1.0

_log = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose words a caption holds: a participant's identity and its track's sid."""

    identity: str
    track: str


class RoomOutbox:
    """Sends notices through ``participant``; at most ``MAX_WAITING`` wait, the newest is dropped and counted."""

    def __init__(self, participant: rtc.LocalParticipant, call_id: str) -> None:
        self._participant = participant
        self._log = _log.of(call_id)
        self._queue: asyncio.Queue[tuple[Notice, Speaker] | None] = asyncio.Queue(MAX_WAITING)
        self._writers: dict[str, rtc.TextStreamWriter] = {}
        self._task = asyncio.get_running_loop().create_task(self._run())

    def put(self, notice: Notice, speaker: Speaker) -> None:
        """Send ``notice`` when its turn comes; ``speaker`` is whose words it holds, if it is a caption."""
        try:
            self._queue.put_nowait((notice, speaker))
        except asyncio.QueueFull:
            DROPS.labels(what="event", reason="backlog").inc()

    async def close(self) -> None:
        """Send what waits, for at most a second; idempotent."""
        if not self._task.done():
            try:
                async with asyncio.timeout(_LAST_WORDS_S):
                    await self._queue.put(None)
                    await asyncio.shield(self._task)
            except TimeoutError:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while (item := await self._queue.get()) is not None:
            try:
                async with asyncio.timeout(_SEND_LIMIT_S):
                    await self._send(*item)
            except Exception as fault:  # of the SDK: many kinds, and none may keep the next from being sent
                DROPS.labels(what="event", reason="room").inc()
                self._log.warning("not_sent", what=type(item[0]).__name__, why=repr(fault))

    async def _send(self, notice: Notice, speaker: Speaker) -> None:
        match notice:
            case Message(text):
                payload = text.encode()
                if len(payload) > MAX_MESSAGE:
                    DROPS.labels(what="event", reason="too_long").inc()
                    return
                await self._participant.publish_data(payload, reliable=True, topic=LABEL)
            case AgentState(state):
                await self._participant.set_attributes({_STATE: state})
            case Spoken(segment, text):
                writer = self._writers.get(segment)
                if writer is None:
                    writer = self._writers[segment] = await self._participant.stream_text(
                        topic=TRANSCRIPTION, attributes=_attributes(segment, speaker, final=False))
                await writer.write(text)
            case SpokenDone(segment):
                if (writer := self._writers.pop(segment, None)) is not None:
                    await writer.aclose(attributes={_FINAL: "true"})
            case Caption(segment, text, _, final):
                writer = await self._participant.stream_text(
                    topic=TRANSCRIPTION, attributes=_attributes(segment, speaker, final=final),
                    sender_identity=speaker.identity)
                if text:
                    await writer.write(text)
                await writer.aclose()


def _attributes(segment: str, speaker: Speaker, *, final: bool) -> dict[str, str]:
    attributes = {_SEGMENT: segment, _FINAL: "true" if final else "false"}
    if speaker.track:
        attributes[_TRACK] = speaker.track
    return attributes
