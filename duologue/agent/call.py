"""One call: binds a transport, a conversation and an engine session; the only glue between them.

Everything here happens on the event loop and takes microseconds; the model works in processes of its own.
What each side means is decided elsewhere: turn-taking in ``conversation.py``, the wire in ``realtime/``,
audio in ``media/``. Time is the number of the caller's samples.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from duologue import metrics
from duologue.agent.config import ConversationConfig
from duologue.agent.conversation import (
    Announce,
    CancelAsked,
    Conversation,
    Duck,
    End,
    Event,
    HungUp,
    Interrupt,
    Pause,
    PlayFinished,
    PlayStarted,
    ReplyClosed,
    ReplyOpened,
    Resume,
    Ruled,
    State,
    Tick,
    Unduck,
)
from duologue.agent.logs import EventLog
from duologue.agent.media.activity import Offset, Onset, Probability, VoiceEvent
from duologue.agent.media.playout import Playout
from duologue.agent.media.units import Unitizer
from duologue.agent.realtime import events as ev
from duologue.agent.realtime.parse import BadEventError, parse
from duologue.agent.realtime.projection import Projection, Status
from duologue.agent.transports.base import FRAME_MS, Telephone, Transport
from duologue.engine import (
    INPUT_RATE,
    CallerText,
    CallerWords,
    Choice,
    Decision,
    EngineEvent,
    Health,
    Overrun,
    Pcm,
    PipelineConfig,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    Unit,
)

_log = EventLog(__name__)

_PER_MS = INPUT_RATE // 1000
_ECHO_TAIL = 200 * _PER_MS
"""Samples for which the reply counts as audible after its last frame was handed out: the way to the caller's ear
and back through the microphone (a browser's jitter buffer alone holds 25-60 ms)."""

_STATUS: dict[TurnStatus, Status] = {TurnStatus.DONE: "completed", TurnStatus.INTERRUPTED: "cancelled",
                                     TurnStatus.FAILED: "failed"}


@dataclass(slots=True)
class Tally:
    """What happened in a call, for its log line."""

    units: int = 0
    turns: int = 0
    interruptions: int = 0
    false_alarms: int = 0
    concealed_ms: int = 0
    underruns: int = 0


class Ear(Protocol):
    """What tells a call when speech begins and ends: ``VoiceActivity``, or a test's script."""

    def push(self, pcm: Pcm) -> list[VoiceEvent]:
        """Take the next samples (16 kHz); returns what they showed."""


class Session(Protocol):
    """What a call needs of an ``EngineSession``; a test's script is one too."""

    def append(self, unit: Unit) -> None:
        """Give the next unit."""

    def inject(self, item: CallerText) -> None:
        """Give text between two units."""

    def interrupt(self, turn: int, heard_samples: int) -> str:
        """Cut a reply; returns the text that was heard."""

    def outputs(self) -> AsyncIterator[EngineEvent]:
        """Yield what happens."""

    async def close(self) -> None:
        """Give everything back."""


class Call:
    """One caller, from connect to hang-up. Implements ``CallMedia`` for its transport."""

    def __init__(self, call_id: str, session: Session, pipeline: PipelineConfig, config: ConversationConfig,
                 ear: Ear, *, wishes: Mapping[str, Any] | None = None,
                 on_end: Callable[[Call], None] = lambda _call: None) -> None:
        """``wishes`` is the client's own session object, ``on_end`` is called once when all is given back."""
        self.call_id = call_id
        self.tally = Tally()
        self.outcome = ""
        self._log = _log.of(call_id)
        self._session = session
        self._pipeline = pipeline
        self._on_end = on_end
        self._transport: Transport | None = None
        self._conversation = Conversation(config.barge_in)
        self._ear = ear
        self._unitizer = Unitizer(pipeline.unit_samples)
        self._playout = Playout(pipeline.output_rate)
        self._projection = Projection(pipeline.name, self._emit)
        self._projection.configure(wishes or {})
        self._events_sent = 0
        self._now = 0
        self._audible_until = 0
        self._speech_of_unit: dict[int, float] = {}
        self._voiced: set[int] = set()
        self._awaiting_reply_since: int | None = None
        self._stop_ms = 0
        self._closed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    # --- life -----------------------------------------------------------------------------------------------

    def start(self, transport: Transport) -> None:
        """Begin to carry the engine's events to ``transport``."""
        self._transport = transport
        metrics.CALLS_LIVE.labels(transport=transport.name).inc()
        self._spawn(self._follow_engine())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_engine(self) -> None:
        try:
            async for event in self._session.outputs():
                self._on_engine(event)
            reason = "engine"
        except Exception as fault:
            self._log.error("call_failed", fault=fault)
            self._projection.error("internal_error", "The server failed to go on with this call.", ours=True)
            reason = "fault"
        self.hang_up(reason)

    def hang_up(self, reason: str) -> None:
        """End the call; idempotent. ``reason`` goes to the log and the metrics."""
        self._handle(HungUp(reason))

    @property
    def telephone(self) -> Telephone | None:
        """What can be done with a telephone's call; None on any other transport."""
        return self._transport if isinstance(self._transport, Telephone) else None

    async def wait_closed(self) -> None:
        """Wait until the call has given everything back."""
        await self._closed.wait()

    async def _give_back(self) -> None:
        try:
            with contextlib.suppress(Exception):
                await self._session.close()
        finally:
            transport = self._transport
            try:
                if transport is not None:
                    with contextlib.suppress(Exception):
                        await transport.close()
            finally:
                if transport is not None:
                    metrics.CALLS_LIVE.labels(transport=transport.name).dec()
                    metrics.CALLS.labels(transport=transport.name, outcome=self.outcome).inc()
                self.tally.underruns = self._playout.underruns
                self._log.info("call_ended", outcome=self.outcome, seconds=round(self._now / INPUT_RATE, 2),
                               **asdict(self.tally))
                self._closed.set()
                self._on_end(self)

    # --- the transport's side (CallMedia) -------------------------------------------------------------------

    @property
    def output_rate(self) -> int:
        """Sample rate of the reply, in Hz."""
        return self._pipeline.output_rate

    def connected(self) -> None:
        """Media and control channel are up."""
        self._projection.opened()

    def gone(self, reason: str) -> None:
        """The caller hung up or was lost."""
        self.hang_up(reason)

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Take the caller's next samples (16 kHz)."""
        if self._conversation.state is State.ENDED:
            return
        audible = len(pcm) if self._now < self._audible_until else 0
        self._now += len(pcm)
        self.tally.concealed_ms += concealed // _PER_MS
        metrics.CONCEALED_SAMPLES.inc(concealed)
        for heard in self._ear.push(pcm):
            if isinstance(heard, Probability):
                self._unitizer.note_speech(heard.value, heard.upto)
                continue
            self._handle(heard)
            if isinstance(heard, Onset):
                self._projection.speech_started(heard.at // _PER_MS)
            elif isinstance(heard, Offset):
                self._projection.speech_stopped(heard.at // _PER_MS)
                if self._conversation.state is State.LISTENING:
                    self._awaiting_reply_since = heard.at
        for unit in self._unitizer.push(pcm, concealed, audible):
            self._submit(unit)

    def _submit(self, unit: Unit) -> None:
        self.tally.units += 1
        self._speech_of_unit[unit.index] = unit.speech
        try:
            self._session.append(unit)
        except Overrun:
            metrics.DROPS.labels(what="call", reason="overrun").inc()
            self._projection.error("server_overloaded", "The server can't keep up with this call; please call again.",
                                   ours=True)
            self.hang_up("overrun")

    def pull(self) -> Pcm:
        """Give the next 20 ms of the reply."""
        pulled = self._playout.pull(self.output_rate * FRAME_MS // 1000)
        if self._playout.audible:
            self._audible_until = self._now + _ECHO_TAIL
        self._handle(Tick(self._now, FRAME_MS * _PER_MS if self._playout.audible else 0))
        for turn in pulled.started:
            self._on_play_started(turn)
        for turn in pulled.finished:
            self._projection.play_finished(turn)
            self._handle(PlayFinished(turn))
        return pulled.pcm

    def _on_play_started(self, turn: int) -> None:
        self._handle(PlayStarted(turn))
        self._projection.play_started(turn)
        if self._awaiting_reply_since is not None:
            waited = self._now - self._awaiting_reply_since
            self._awaiting_reply_since = None
            metrics.VOICE_TO_VOICE_SECONDS.observe(waited / INPUT_RATE)
            self._projection.ours(ev.LatencyEvent(kind="voice_to_voice", ms=waited // _PER_MS))

    def dtmf(self, key: str) -> None:
        """Take a key of a telephone."""
        if self._conversation.state is not State.ENDED:
            self._log.info("key_pressed", words=key)  # it may be a digit of a secret
            self._projection.key_pressed(key, int(time.time()))

    def receive(self, message: str) -> None:
        """Take a message from the control channel."""
        if self._conversation.state is State.ENDED:
            return
        try:
            event = parse(message)
        except BadEventError as refusal:
            self._projection.error(refusal.code, str(refusal), refusal.event_id)
            return
        match event:
            case ev.SessionUpdate():
                self._projection.update(event.session)
            case ev.ItemCreate():
                self._on_item(event)
            case ev.ItemRetrieve():
                self._projection.retrieve(event.item_id, event.event_id)
            case ev.Plain(type="response.cancel" | "output_audio_buffer.clear"):
                self._handle(CancelAsked())
            case _:
                # The model decides when to reply, and what was heard is known from the playout: a request to
                # reply, to commit audio or to truncate has nothing to add, and clients send them as a matter
                # of course, so they are no errors.
                pass

    def _on_item(self, event: ev.ItemCreate) -> None:
        text = " ".join(part.text.strip() for part in event.item.content if part.type == "input_text" and part.text)
        if event.item.type != "message" or event.item.role != "user" or not text:
            self._projection.error("bad_event", "Only a user's message with input_text can be created in this session.",
                                   event.event_id)
            return
        try:
            self._session.inject(CallerText(text))
        except Overrun:
            metrics.DROPS.labels(what="text", reason="overrun").inc()
            self._projection.error("too_many_items", "Too many messages wait for an answer; try again in a moment.",
                                   event.event_id)
        else:
            self._projection.caller_typed(text, event.item.id)

    # --- the engine's side ----------------------------------------------------------------------------------

    def _on_engine(self, event: EngineEvent) -> None:
        match event:
            case Decision():
                self._on_decision(event)
            case CallerWords():
                unit_ms = self._pipeline.unit_ms
                if event.final:
                    self._log.info("caller_said", words=event.text)
                self._projection.caller_words(event.utterance, event.text, event.final,
                                              event.first_unit * unit_ms, (event.last_unit + 1) * unit_ms)
            case ReplyText(fence, _start, text):
                self._open_reply(fence.turn)
                self._projection.reply_text(fence.turn, text)
            case ReplyAudio(fence, first_sample, pcm, _spans, last):
                self._open_reply(fence.turn)
                self._voiced.add(fence.turn)
                self._playout.enqueue(fence.turn, first_sample, pcm, last)
            case TurnEnd(turn=turn, status=status):
                self.tally.turns += 1
                self._log.info("agent_said", words=event.text, status=status.value, reason=event.reason)
                self._projection.reply_ended(turn, _STATUS[status], event.reason)
                if status is TurnStatus.FAILED:
                    self._playout.seal(turn)
                self._handle(ReplyClosed(turn, silent=turn not in self._voiced))
                self._voiced.discard(turn)
            case Health(stage, up):
                self._projection.ours(ev.HealthEvent(stage=stage, up=up))

    def _on_decision(self, decision: Decision) -> None:
        unit_ms = self._pipeline.unit_ms
        end = (decision.unit + 1) * self._pipeline.unit_samples
        if decision.choice is Choice.SPEAK:
            self._open_reply(decision.turn)
        self._handle(Ruled(end, decision.yields))
        self._projection.ours(ev.DecisionEvent(
            unit=decision.unit, choice=decision.choice.value, yields=decision.yields,
            speech=round(self._speech_of_unit.pop(decision.unit, 0.0), 3), at_ms=end // _PER_MS, unit_ms=unit_ms))

    def _open_reply(self, turn: int) -> None:
        self._handle(ReplyOpened(turn))
        self._projection.reply_opened(turn)

    # --- effects --------------------------------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        for effect in self._conversation.handle(event):
            match effect:
                case Duck():
                    self._playout.duck()
                case Unduck():
                    self._playout.unduck()
                case Pause(onset_at):
                    self._stop_ms = (self._now - onset_at) // _PER_MS + FRAME_MS
                    self._playout.pause()
                case Resume():
                    self.tally.false_alarms += 1
                    metrics.FALSE_ALARMS.inc()
                    self._playout.unduck()
                    self._playout.resume()
                case Interrupt(turn, by_client):
                    self._interrupt(turn, by_client)
                case Announce(state):
                    self._projection.ours(ev.StateEvent(state=state.value, at_ms=self._now // _PER_MS))
                case End(reason):
                    self.outcome = reason
                    self._playout.flush()
                    self._spawn(self._give_back())

    def _interrupt(self, turn: int, by_client: bool) -> None:
        was_paused = self._playout.paused
        heard = self._playout.playhead(turn)
        heard_text = self._session.interrupt(turn, heard)
        self._playout.flush()
        self._projection.reply_cut(turn, heard_text, heard * 1000 // self.output_rate, by_client=by_client)
        self.tally.interruptions += 1
        if not by_client:
            floor = self._conversation.floor
            stop_ms = self._stop_ms if was_paused else (self._now - floor.onset_at) // _PER_MS + FRAME_MS
            metrics.STOP_SECONDS.observe(stop_ms / 1000)
            self._projection.ours(ev.LatencyEvent(kind="stop", ms=stop_ms))
            if not floor.in_speech:
                self._awaiting_reply_since = floor.offset_at

    def _emit(self, event: ev.ServerEvent) -> None:
        if self._transport is not None:
            self._events_sent += 1
            numbered = event.model_copy(update={"event_id": f"event_{self.call_id}_{self._events_sent}"})
            self._transport.send(numbered.model_dump_json(exclude_none=True))
