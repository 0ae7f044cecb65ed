"""What goes between caller and engine in a call: samples, events and messages in; calls, samples and events out.

It is synchronous and takes microseconds: no asyncio, no clock but the number of the caller's samples. What each side
means is decided elsewhere: turn-taking in ``conversation.py``, the wire in ``realtime/``, a client's wishes in
``client.py``, audio in ``media/``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from duologue import metrics
from duologue.agent.awaited import Awaited, Late
from duologue.agent.client import Client
from duologue.agent.config import ConversationConfig
from duologue.agent.conversation import Conversation
from duologue.agent.hearing import Hearing
from duologue.agent.latencies import Latencies
from duologue.agent.logs import EventLog
from duologue.agent.media.activity import Hint, Offset, Onset
from duologue.agent.media.playout import Playout, Pulled
from duologue.agent.ports import Ear, Session
from duologue.agent.realtime import events as ev
from duologue.agent.realtime.formats import AudioFormat
from duologue.agent.realtime.projection import Projection
from duologue.agent.realtime.replies import Status
from duologue.agent.realtime.session import SessionObject
from duologue.agent.tally import Tally
from duologue.agent.transports.base import FRAME_MS, Speak
from duologue.agent.turn_events import (
    Announce,
    CancelAsked,
    Cause,
    Duck,
    End,
    Event,
    HungUp,
    Interrupt,
    Pause,
    PlayFinished,
    PlayStarted,
    RanLong,
    ReplyClosed,
    ReplyOpened,
    Resume,
    Ruled,
    State,
    Tick,
    Unduck,
)
from duologue.engine import (
    INPUT_RATE,
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
    ToolCall,
    TurnEnd,
    TurnStatus,
    Unit,
)

_PER_MS = INPUT_RATE // 1000
_ECHO_TAIL = 200 * _PER_MS
"""Samples for which the reply counts as audible after its last frame was handed out: the way to the caller's ear
and back through the microphone (a browser's jitter buffer alone holds 25-60 ms)."""

_STATUS: dict[TurnStatus, Status] = {TurnStatus.DONE: "completed", TurnStatus.INTERRUPTED: "cancelled",
                                     TurnStatus.FAILED: "failed"}
_REASON: dict[Cause, ev.CutReason] = {Cause.SPEECH: "turn_detected", Cause.CLIENT: "client_cancelled",
                                      Cause.LENGTH: "max_output_tokens"}
_NO_TURN = -1


class Exchange:
    """One call's. To its transport it is ``EventMedia``."""

    def __init__(self, session: Session, pipeline: PipelineConfig, config: ConversationConfig, ear: Ear, *,
                 wishes: Mapping[str, Any], emit: Callable[[ev.ServerEvent], None], on_end: Callable[[str], None],
                 log: EventLog) -> None:
        """``wishes`` is the client's own session object, ``on_end`` is told once why the call is over.

        Raises ``BadSessionError`` for wishes that make no session.
        """
        self.tally = Tally()
        self._log = log
        self._session = session
        self._pipeline = pipeline
        self._on_end = on_end
        self._conversation = Conversation(config.barge_in)
        self._hearing = Hearing(ear, pipeline.unit_samples)
        self._playout = Playout(pipeline.output_rate)
        self._projection = Projection(SessionObject(pipeline.name).merged(wishes), emit)
        self._awaited = Awaited()
        self._client = Client(self, session, self._projection, self._awaited)
        self._latencies = Latencies()
        self._now = self._silence_due = self._audible_until = 0
        self._ahead = 0
        """Samples of the reply that were given and cannot have been played yet."""
        self._newest_turn = _NO_TURN
        self._voiced: set[int] = set()

    # --- the transport's side (EventMedia) ------------------------------------------------------------------

    @property
    def output_rate(self) -> int:
        """Sample rate of the reply, in Hz."""
        return self._pipeline.output_rate

    @property
    def formats(self) -> tuple[AudioFormat, AudioFormat]:
        """How the client's audio is coded, in and out."""
        return self._projection.session.input_format, self._projection.session.output_format

    @property
    def sounding(self) -> bool:
        """Whether the next 20 ms hold any of a reply."""
        return self._playout.sounding

    @property
    def silence_due(self) -> int:
        """Samples of silence that are to be fed at once."""
        return self._silence_due

    @property
    def awaits_time(self) -> bool:
        """Whether a reply is awaited or being written."""
        return self._awaited.anything

    def connected(self, *, voice_in_events: bool = False) -> None:
        """Media and control channel are up."""
        self._projection.opened(voice_in_events=voice_in_events)

    def gone(self, reason: str) -> None:
        """The call is over, or is to be; idempotent."""
        self._handle(HungUp(reason))

    def failed(self) -> None:
        """The server cannot go on with this call."""
        self._projection.error("internal_error", "The server failed to go on with this call.", ours=True)
        self.gone("fault")

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        """Take the caller's next samples (16 kHz)."""
        if self._conversation.state is State.ENDED:
            return
        wishes, before = self._projection.session.wishes, self._now
        audible = len(pcm) if self._now < self._audible_until else 0
        self._now += len(pcm)
        self._silence_due = max(0, self._silence_due - len(pcm))
        self.tally.concealed_ms += concealed // _PER_MS
        metrics.CONCEALED_SAMPLES.inc(concealed)
        if not wishes.detects:
            self._projection.audio_comes(before // _PER_MS)
        for heard in self._hearing.voice(pcm):
            if wishes.detects:
                self._on_voice(heard, interruptible=wishes.interruptible)
        for unit in self._hearing.units(pcm, concealed, audible):
            self._submit(unit)

    def _on_voice(self, heard: Hint | Onset | Offset, *, interruptible: bool) -> None:
        if interruptible:
            self._handle(heard)
        listening = self._conversation.state is State.LISTENING
        if isinstance(heard, Onset):
            self._projection.speech_started(heard.at // _PER_MS, over_reply=not listening)
        elif isinstance(heard, Offset):
            self._projection.speech_stopped(heard.at // _PER_MS)
            if listening:
                self._latencies.caller_done(heard.at)

    def _submit(self, unit: Unit) -> None:
        if self._conversation.state is State.ENDED:  # by a unit before
            return
        self.tally.units += 1
        try:
            self._session.append(unit)
        except Overrun:
            metrics.DROPS.labels(what="call", reason="overrun").inc()
            self._projection.error("server_overloaded", "The server can't keep up with this call; please call again.",
                                   ours=True)
            self.gone("overrun")

    def pull(self) -> Pcm:
        """Give the next 20 ms of the reply."""
        pulled = self._pull()
        for turn in pulled.started:
            self._on_play_started(turn)
        for turn in pulled.finished:
            self._on_play_finished(turn)
        return pulled.pcm

    def speak(self, ahead: int, out: Speak) -> Pcm:
        """Give the next 20 ms of the reply to a client that plays it itself; see ``EventMedia``."""
        self._ahead = ahead
        pulled = self._pull()
        for turn in sorted({piece.turn for piece in pulled.pieces}.union(pulled.finished)):
            if turn in pulled.started:
                self._on_play_started(turn)
            for piece in pulled.pieces:
                if piece.turn == turn:
                    self._ahead += piece.end - piece.start
                    out(*self._projection.reply_names(turn), pulled.pcm[piece.start:piece.end])
            if turn in pulled.finished:
                self._on_play_finished(turn)
        return pulled.pcm

    def _pull(self) -> Pulled:
        pulled = self._playout.pull(self.output_rate * FRAME_MS // 1000)
        if self._playout.audible:
            self._audible_until = self._now + _ECHO_TAIL + self._ahead * INPUT_RATE // self.output_rate
        self._handle(Tick(self._now, FRAME_MS * _PER_MS if self._playout.audible else 0))
        self._look_for_the_late()
        return pulled

    def _look_for_the_late(self) -> None:
        match self._awaited.late(self._now):
            case Late.ANSWER:
                self.take_back()
                self._projection.nothing_came()
            case Late.REPLY if not self._projection.session.wishes.auto_respond:
                self._handle(RanLong())

    def _on_play_started(self, turn: int) -> None:
        self._handle(PlayStarted(turn))
        self._projection.play_started(turn)
        waited = self._latencies.reply_heard(self._now)
        if waited is not None:
            self._projection.ours(ev.LatencyEvent(kind="voice_to_voice", ms=waited))

    def _on_play_finished(self, turn: int) -> None:
        self._projection.play_finished(turn)
        self._handle(PlayFinished(turn))

    def dtmf(self, key: str) -> None:
        """Take a key of a telephone."""
        if self._conversation.state is not State.ENDED:
            self._log.info("key_pressed", words=key)  # it may be a digit of a secret
            self._projection.key_pressed(key, int(time.time()))

    def receive(self, message: str) -> None:
        """Take a message from the control channel."""
        if self._conversation.state is not State.ENDED:
            self._client.take(message)

    # --- what a client's messages act on (Controls) ---------------------------------------------------------

    @property
    def now(self) -> int:
        """The caller's samples (16 kHz) so far."""
        return self._now

    @property
    def speaking(self) -> bool:
        """Whether a reply is on its way to the caller."""
        return self._conversation.state not in (State.LISTENING, State.ENDED)

    def cancel(self) -> None:
        """Stop the reply."""
        self._handle(CancelAsked())

    def take_back(self) -> None:
        """Take a request for a reply back."""
        if not self._projection.session.wishes.auto_respond:
            self._session.interrupt(_NO_TURN, 0)

    def truncate(self, turn: int, audio_end_ms: int) -> int:
        """Take note that of reply ``turn`` no more than this was heard; returns the milliseconds that count.

        What was not sent was not heard, so a client can only lower it. A reply that was cut stays as it was cut.
        """
        given = min(audio_end_ms * self.output_rate // 1000, self._playout.playhead(turn))
        floor = self._conversation.floor
        if turn in floor.turns[:1]:
            self._ahead = max(self._ahead, self._playout.playhead(turn) - given)
            self._handle(CancelAsked())
        elif not floor.turns:
            self._projection.reply_shortened(turn, self._session.interrupt(turn, given))
        return given * 1000 // self.output_rate

    def commit(self) -> None:
        """Have what was heard so far given to the model: a whole unit, and one more for models that look ahead."""
        self._silence_due = self._hearing.missing + self._pipeline.unit_samples
        self._projection.committed()

    # --- the engine's side ----------------------------------------------------------------------------------

    def take(self, event: EngineEvent) -> None:
        """Take what the engine says."""
        match event:
            case Decision():
                self._on_decision(event)
            case CallerWords():
                if event.final:
                    self._log.info("caller_said", words=event.text)
                first, end = (unit * self._pipeline.unit_ms for unit in (event.first_unit, event.last_unit + 1))
                self._projection.caller_words(event.utterance, event.text, event.final, first, end)
            case ReplyText(fence, _start, text, last):
                self._open_reply(fence.turn)
                self._projection.reply_text(fence.turn, text)
                if last:
                    self._awaited.written(fence.turn)
            case ReplyAudio(fence, first_sample, pcm, spans, last):
                self._open_reply(fence.turn)
                self._voiced.add(fence.turn)
                self._projection.reply_words(fence.turn, spans, self.output_rate)
                self._playout.enqueue(fence.turn, first_sample, pcm, last)
            case ToolCall(call=call, name=name, arguments=arguments):
                self._log.info("tool_called", name=name, words=arguments)
                self._awaited.answered()
                self._projection.tool_called(call, name, arguments)
            case TurnEnd():
                self._on_turn_end(event)
            case Health(stage, up):
                self._projection.ours(ev.HealthEvent(stage=stage, up=up))

    def _on_turn_end(self, end: TurnEnd) -> None:
        turn, voiced = end.turn, end.turn in self._voiced
        self.tally.turns += 1
        self._log.info("agent_said", words=end.text, status=end.status.value, reason=end.reason)
        self._awaited.written(turn)
        self._projection.reply_ended(turn, _STATUS[end.status], end.reason, voiced=voiced)
        if end.status is TurnStatus.FAILED:
            self._playout.seal(turn)
        self._handle(ReplyClosed(turn, silent=not voiced))
        self._voiced.discard(turn)

    def _on_decision(self, decision: Decision) -> None:
        unit_ms = self._pipeline.unit_ms
        end = (decision.unit + 1) * self._pipeline.unit_samples
        if decision.choice is Choice.SPEAK:
            self._open_reply(decision.turn)
        self._handle(Ruled(end, decision.yields))
        self._projection.ours(ev.DecisionEvent(
            unit=decision.unit, choice=decision.choice.value, yields=decision.yields,
            speech=round(self._hearing.decided(decision.unit), 3), at_ms=end // _PER_MS, unit_ms=unit_ms))

    def _open_reply(self, turn: int) -> None:
        if turn > self._newest_turn:
            self._newest_turn = turn
            self._awaited.begun(turn, self._now)
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
                    ahead_ms = self._ahead * 1000 // self.output_rate
                    self._latencies.paused(onset_at, self._now, ahead_ms)
                    self._playout.pause()
                case Resume():
                    self.tally.false_alarms += 1
                    metrics.FALSE_ALARMS.inc()
                    self._playout.unduck()
                    self._playout.resume()
                    if not self._conversation.floor.in_speech:
                        self._projection.speech_settled()
                case Interrupt(turn, cause):
                    self._interrupt(turn, cause)
                case Announce(state):
                    if state is State.LISTENING:
                        self._projection.speech_settled()
                    self._projection.ours(ev.StateEvent(state=state.value, at_ms=self._now // _PER_MS))
                case End(reason):
                    self._playout.flush()
                    self.tally.underruns = self._playout.underruns
                    self.tally.seconds = round(self._now / INPUT_RATE, 2)
                    self._on_end(reason)

    def _interrupt(self, turn: int, cause: Cause) -> None:
        was_paused = self._playout.paused
        heard = max(0, self._playout.playhead(turn) - self._ahead)
        heard_text = self._session.interrupt(turn, heard)
        self._playout.flush()
        self._ahead = 0
        self._awaited.written(turn)
        self._projection.reply_cut(turn, heard_text, heard * 1000 // self.output_rate, _REASON[cause])
        self.tally.interruptions += 1
        if cause is Cause.SPEECH:
            floor = self._conversation.floor
            stop_ms = self._latencies.stopped(floor.onset_at, self._now, was_paused=was_paused)
            self._projection.ours(ev.LatencyEvent(kind="stop", ms=stop_ms))
            if not floor.in_speech:
                self._latencies.caller_done(floor.offset_at)
