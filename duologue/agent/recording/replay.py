"""Replays a recorded call through the same code: what came in goes in again, at the same sample times.

The clock is the tape. The engine's stages work in this process and as fast as they can; what they say reaches the call
at the place of the tape where it did when it was recorded, so that a replay differs only where the code, the config or
the model does. Or the engine is left out (``Source.TAPE``) and the call is given what the engine said then.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any

import numpy as np

from duologue.agent.call import Call
from duologue.agent.config import ConversationConfig
from duologue.agent.media.vad import VoiceActivity
from duologue.agent.recording import tape, told
from duologue.agent.recording.tape import AnyEntry, Recording
from duologue.engine import (
    Brief,
    CallerWords,
    Decision,
    EngineEvent,
    HistoryItem,
    InlineSession,
    Item,
    Pcm,
    PipelineConfig,
    ReplyAudio,
    ReplyText,
    ToolCall,
    TurnEnd,
    Unit,
)


class Source(Enum):
    """Where the engine's events come from."""

    RUN = "run"
    """The pipeline is run again."""
    TAPE = "tape"
    """They are those of the recording: only the agent's side is run again."""


class Replay:
    """What came out of a replay: entries like those of the recording, and the audio."""

    def __init__(self) -> None:
        self.now = 0
        self.entries: list[AnyEntry] = []
        self.agent: list[Pcm] = []
        self.replies: dict[int, list[Pcm]] = {}
        """Audio of each reply as it came from the engine."""
        self.history: Sequence[HistoryItem] = ()

    def note(self, entry: AnyEntry) -> None:
        """Add an entry."""
        self.entries.append(entry)

    def told(self, event: EngineEvent) -> None:
        """Add what the engine said."""
        if isinstance(event, ReplyAudio):
            self.replies.setdefault(event.fence.turn, []).append(event.pcm)
        self.note(told.entry(self.now, event))


async def replay(recording: Recording, source: Source = Source.RUN, *, pipeline: PipelineConfig | None = None,
                 conversation: ConversationConfig | None = None) -> Replay:
    """Replay ``recording``, under another config where one is given. Raises ``ConfigError`` as a server would."""
    sheet = recording.sheet
    pipeline = pipeline or sheet.pipeline
    conversation = conversation or sheet.conversation
    out = Replay()
    session = (_RunSession(out, InlineSession(pipeline, sheet.brief, session=sheet.session))
               if source is Source.RUN else _TapeSession(out, recording))
    call = Call(sheet.call_id, session, pipeline, conversation, VoiceActivity(conversation.vad), wishes=sheet.wishes)
    call.start(_Transport(out, sheet.transport))
    caller, replies = recording.audio("caller"), recording.audio("reply")
    heard = spoken = 0
    for entry in recording.entries:
        match entry:
            case tape.Connected():
                call.media.connected(voice_in_events=entry.voice_in_events)
            case tape.Fed():
                out.now = entry.at + entry.samples
                call.media.feed(caller[heard:heard + entry.samples], entry.concealed)
                heard += entry.samples
            case tape.Pulled():
                out.agent.append(call.media.pull() if entry.ahead is None else call.media.speak(entry.ahead, _nowhere))
            case tape.Received():
                call.media.receive(entry.message)
            case tape.Key():
                call.media.dtmf(entry.key)
            case tape.Gone():
                call.media.gone(entry.reason)
            case tape.Told():
                session.told(entry, replies[spoken:spoken + entry.samples])
                spoken += entry.samples
                await session.taken()
    call.hang_up("the recording is over")
    await call.wait_closed()
    return out


def _nowhere(_response: str, _item: str, _pcm: Pcm) -> None:
    """The client is not there any more."""


class _Transport:
    def __init__(self, out: Replay, name: str) -> None:
        self.name = name
        self._out = out

    def send(self, message: str) -> None:
        self._out.note(tape.Sent(at=self._out.now, message=json.loads(message)))

    async def close(self) -> None:
        """There is nothing to free."""


class _Session:
    """What the call is given for an engine session; ``release`` lets it have an event."""

    def __init__(self, out: Replay) -> None:
        self._out = out
        self._queue: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._given = False

    def release(self, event: EngineEvent) -> None:
        self._out.told(event)
        self._queue.put_nowait(event)

    async def taken(self) -> None:
        """Wait until the call has dealt with what was released."""
        await self._queue.join()

    async def outputs(self) -> AsyncIterator[EngineEvent]:
        while True:
            event = await self._queue.get()
            if event is None:
                self._queue.task_done()
                return
            try:
                yield event
            finally:
                self._queue.task_done()

    def append(self, unit: Unit) -> None:
        self._given = True
        self._out.note(tape.Appended(at=self._out.now, unit=unit.index, speech=round(unit.speech, 6),
                                     concealed=unit.concealed, agent_audible=unit.agent_audible))

    def reopen(self, brief: Brief) -> None:
        if self._given:
            raise ValueError("as the engine would")
        self._out.note(tape.Reopened(at=self._out.now, brief=brief))

    def inject(self, item: Item) -> None:
        self._given = True
        self._out.note(tape.Injected(at=self._out.now, item=told.item(item)))

    def respond(self, instructions: str = "") -> None:
        self._out.note(tape.Responded(at=self._out.now, instructions=instructions))

    def cut(self, turn: int, heard_samples: int, heard: str) -> str:
        self._out.note(tape.Interrupted(at=self._out.now, turn=turn, heard_samples=heard_samples, heard=heard))
        return heard

    async def close(self) -> None:
        self._queue.put_nowait(None)


class _RunSession(_Session):
    """The pipeline, run again; its events wait until the tape comes to those it said then."""

    def __init__(self, out: Replay, engine: InlineSession) -> None:
        super().__init__(out)
        self._engine = engine

    def append(self, unit: Unit) -> None:
        super().append(unit)
        self._engine.append(unit)

    def reopen(self, brief: Brief) -> None:
        self._engine.reopen(brief)
        super().reopen(brief)

    def inject(self, item: Item) -> None:
        super().inject(item)
        self._engine.inject(item)

    def respond(self, instructions: str = "") -> None:
        super().respond(instructions)
        self._engine.respond(instructions)

    def interrupt(self, turn: int, heard_samples: int) -> str:
        return self.cut(turn, heard_samples, self._engine.interrupt(turn, heard_samples))

    def told(self, entry: tape.Told, _pcm: Pcm) -> None:
        self._engine.settle()
        then = told.decode(entry.event, np.zeros(entry.samples, np.int16))
        mark = _mark(then)
        if mark is None:
            return
        # The thinker and the voice say things independently of each other, each in order.
        waiting = [n for n, event in enumerate(self._engine.waiting) if _of_voice(event) == _of_voice(then)]
        reached = next((n for n in waiting if _reaches(self._engine.waiting[n], mark)), -1)
        audio = self._engine.waiting[reached] if reached >= 0 else None
        if isinstance(audio, ReplyAudio):
            # No more of it than had come by then: how it is cut into chunks depends on how fast the machine was.
            self._engine.split(reached, mark[2] - audio.first_sample)
        for count, n in enumerate(n for n in waiting if n <= reached):
            event = self._engine.pop(n - count)
            assert event is not None
            self.release(event)

    async def close(self) -> None:
        self._engine.settle()
        while (event := self._engine.pop()) is not None:
            self._out.told(event)
        self._out.history = self._engine.history()
        self._engine.close()
        await super().close()


class _TapeSession(_Session):
    """What the engine said then."""

    def __init__(self, out: Replay, recording: Recording) -> None:
        super().__init__(out)
        self._cuts = deque(entry for entry in recording.entries if isinstance(entry, tape.Interrupted))

    def interrupt(self, turn: int, heard_samples: int) -> str:
        # A cut the recording has not got was heard by nobody then: there is no text for it.
        heard = self._cuts.popleft().heard if self._cuts and self._cuts[0].turn == turn else ""
        return self.cut(turn, heard_samples, heard)

    def told(self, entry: tape.Told, pcm: Pcm) -> None:
        self.release(told.decode(entry.event, pcm))


_Mark = tuple[Any, ...]


def _mark(event: EngineEvent) -> _Mark | None:
    """How far the engine had got with this event, in terms that do not depend on how it cuts its output."""
    match event:
        case Decision():
            return "decision", 0, event.unit
        case CallerWords():
            return "words", 0, (event.utterance, event.last_unit, event.final)
        case ReplyText():
            return "text", event.fence.turn, event.start + len(event.text)
        case ReplyAudio():
            return "audio", event.fence.turn, event.first_sample + len(event.pcm)
        case ToolCall():
            return "tool_call", event.call, 0
        case TurnEnd():
            return "end", event.turn, 0
        case _:
            return None


def _of_voice(event: EngineEvent) -> bool:
    return isinstance(event, ReplyAudio | TurnEnd)


def _reaches(event: EngineEvent, mark: _Mark) -> bool:
    got = _mark(event)
    return got is not None and got[:2] == mark[:2] and bool(got[2] >= mark[2])
