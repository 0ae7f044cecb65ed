"""Holds the calls: every door has them made here, the same way, and here they end; says how the server is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from duologue import metrics
from duologue.agent.call import Call
from duologue.agent.client import brief_of
from duologue.agent.config import ConversationConfig
from duologue.agent.http.host import PartHealth, Upgrade, new_call_id
from duologue.agent.media.vad import VoiceActivity
from duologue.agent.realtime.session import SessionObject
from duologue.agent.recording.recorder import Recorder
from duologue.agent.speech import Speech
from duologue.agent.transports.base import EventMedia, Telephone, Transport
from duologue.agent.transports.sdp import read_offer
from duologue.agent.transports.webrtc import WebRtcTransport, check_media
from duologue.agent.transports.websocket.transport import WebSocketTransport
from duologue.engine import Engine, ProcessHealth, Refused

MakeTransport = Callable[[EventMedia], Awaitable[Transport]]
"""Brings up what carries a call's media. Whatever it raises, it leaves nothing behind; until it has returned, it tells
the call neither ``connected`` nor ``gone``."""


class Door(Protocol):
    """Where calls come from besides the page: a SIP endpoint, a room service."""

    @property
    def name(self) -> str:
        """Its part's name in ``/healthz``."""

    def health(self) -> PartHealth:
        """Whether callers can come in through it."""

    def drain(self) -> None:
        """Let nobody in any more; calls that live go on."""

    async def close(self) -> None:
        """Let nobody in any more and free everything; its calls are over when this is called. Idempotent."""


class Switchboard:
    """The ``CallHost`` of a server with one engine."""

    def __init__(self, engine: Engine, conversation: ConversationConfig, recorder: Recorder | None = None) -> None:
        self._engine = engine
        self._conversation = conversation
        self._recorder = recorder
        self._calls: dict[str, Call] = {}
        self._doors: list[Door] = []

    @property
    def models(self) -> Sequence[str]:
        """The one pipeline that is served."""
        return (self._engine.config.name,)

    @property
    def has_room(self) -> bool:
        """Whether a caller would be taken at once: there is room, and nobody waits for it."""
        load = self._engine.load()
        return load.has_room and not load.waiting

    def add(self, door: Door) -> None:
        """Count ``door`` among the parts of the server, and close it with them."""
        self._doors.append(door)

    async def take(self, call_id: str, make_transport: MakeTransport, *, wishes: Mapping[str, Any] | None = None,
                   ticket: str | None = None) -> Call:
        """Make a call for whoever waits at a door: how every transport gets its calls.

        Opens an engine session (``ticket`` is a place in its queue, ``wishes`` the caller's session object), has
        ``make_transport`` bring up the media for the new call, and starts it. Raises ``Refused``, ``BadSessionError``
        for wishes that make no session, and what ``make_transport`` raises; whatever fails or is cancelled, nothing is
        left behind.
        """
        wishes = wishes or {}
        brief = brief_of(SessionObject(self._engine.config.name).merged(wishes).wishes)
        with _refusals_counted():
            opened = self._engine.open(instructions=brief.instructions, voice=brief.voice, tools=brief.tools,
                                       auto_respond=brief.auto_respond, ticket=ticket)
        tape = self._recorder.begin(call_id, wishes) if self._recorder else None
        session = tape.session(opened) if tape else opened
        try:
            call = Call(call_id, session, self._engine.config, self._conversation,
                        VoiceActivity(self._conversation.vad), wishes=wishes, on_end=self._forget)
            transport = await make_transport(tape.media(call.media) if tape else call.media)
        except BaseException:
            await session.close()
            raise
        self._calls[call_id] = call
        call.start(tape.transport(transport) if tape else transport,
                   transport if isinstance(transport, Telephone) else None)
        return call

    async def offer(self, sdp: str, session: Mapping[str, Any] | None, ticket: str | None) -> tuple[str, str]:
        """Answer a browser's offer; see ``CallHost``."""
        read_offer(sdp)  # a bad offer must not cost anybody a place
        call_id = new_call_id()
        answer = ""

        async def accept(media: EventMedia) -> Transport:
            nonlocal answer
            transport = WebRtcTransport(call_id)
            answer = await transport.accept(sdp, media)
            return transport

        await self.take(call_id, accept, wishes=session, ticket=ticket)
        return call_id, answer

    async def converse(self, upgrade: Upgrade, session: Mapping[str, Any], ticket: str | None) -> None:
        """Hold a call on a WebSocket; see ``CallHost``."""
        call_id = new_call_id("ws")
        transport: WebSocketTransport | None = None

        async def accept(media: EventMedia) -> Transport:
            nonlocal transport
            transport = WebSocketTransport(call_id, *await upgrade(), media)
            return transport

        await self.take(call_id, accept, wishes=session, ticket=ticket)
        assert transport is not None
        await transport.run()

    def speak(self, text: str, voice: str, pace: float, ticket: str | None) -> Speech:
        """Speak a text for somebody who is in no call; see ``CallHost``."""
        with _refusals_counted():
            session = self._engine.open_speech(voice=voice, ticket=ticket)
        return Speech(session, text, pace, self._engine.config.output_rate)

    def _forget(self, call: Call) -> None:
        self._calls.pop(call.call_id, None)

    async def hang_up(self, call_id: str) -> bool:
        """End a call and wait until it has given everything back."""
        call = self._calls.get(call_id)
        if call is None:
            return False
        call.hang_up("hung up")
        await call.wait_closed()
        return True

    def telephone(self, call_id: str) -> Telephone | None:
        """What can be done with a telephone's call; see ``CallHost``."""
        return self._calls[call_id].telephone

    def health(self) -> Mapping[str, PartHealth]:
        """Every stage and every door by its name, and whether a browser could be answered at all."""
        replicas: dict[str, list[ProcessHealth]] = {}
        for process in self._engine.health().values():
            for stage in process.stages:
                replicas.setdefault(stage, []).append(process)
        # A stage works while one of its replicas does.
        parts = {stage: PartHealth(any(process.up for process in processes),
                                   "; ".join(process.detail for process in processes if process.detail))
                 for stage, processes in replicas.items()}
        fault = check_media()
        return {**parts, **{door.name: door.health() for door in self._doors}, "media": PartHealth(not fault, fault)}

    async def drain(self) -> None:
        """Wait until the last call is over; no new one is taken."""
        for door in self._doors:
            door.drain()
        await self._engine.drain()
        await asyncio.gather(*(call.wait_closed() for call in list(self._calls.values())))

    async def close(self) -> None:
        """End every call, then the doors, then the engine."""
        calls = list(self._calls.values())
        for call in calls:
            call.hang_up("server stopped")
        await asyncio.gather(*(call.wait_closed() for call in calls))
        try:
            for door in self._doors:
                await door.close()
        finally:
            await self._engine.close()
        if self._recorder is not None:
            await asyncio.to_thread(self._recorder.flush)


@contextlib.contextmanager
def _refusals_counted() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        metrics.REFUSALS.labels(reason=refused.reason).inc()
        raise
