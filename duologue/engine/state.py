"""What a session is, without I/O: calls of the agent and messages of the stages in, events and sends out.

The rules this file keeps, whatever order things come in:

* Exactly one decision for every unit, in order.
* A reply's text and audio come once and in order, and exactly one terminal event ends it.
* Nothing of an epoch before the present one is emitted.
* A stage that was lost is rebuilt from the journal, and its replies go on.

Every stage holds one life of the session at a time, from one ``Open`` to the next, named by a serial number;
messages of an earlier life are stale.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from duologue.engine.config import PipelineConfig
from duologue.engine.connectors import Filed, Missing
from duologue.engine.feed import Feed
from duologue.engine.journal import Cut, GivenUp, Heard, Journal, Said
from duologue.engine.messages import (
    AppendUnit,
    CallerText,
    CallerWords,
    Close,
    CodecFrames,
    Decided,
    Decision,
    EngineEvent,
    Fence,
    Health,
    HistoryItem,
    Inject,
    Interrupt,
    Open,
    ReplyAudio,
    ReplyText,
    SessionFailed,
    StageInput,
    StageOutput,
    TurnEnd,
    TurnStatus,
    Unit,
)
from duologue.engine.outbox import Outbox, void
from duologue.engine.pipeline import Graph
from duologue.engine.turns import Turn, Turns
from duologue.engine.wire import ToStage

MAX_INJECTED = 64
"""Items that may be injected between two decisions."""
CONTINUE_WITHIN_S = 2.0
"""Caller's time within which a rebuilt thinker must go on with the reply it was writing."""


class Overrun(Exception):  # noqa: N818 - the name of the condition
    """The session has as much waiting for a decision as it may; what was given was not taken."""


class SessionState:
    """One session; whoever holds it drains ``sends`` after every call and ``pop``s the events."""

    def __init__(self, session: str, config: PipelineConfig, graph: Graph,
                 instructions: str = "", voice: str = "") -> None:
        self.session = session
        self.sends: list[ToStage] = []
        self.drops: Counter[tuple[str, str]] = Counter()
        self.over = False
        self.epoch = 0
        self.units = 0
        """Units given so far, which is the next one's index."""
        self.decided = 0
        """Units whose decision has been emitted."""
        self._config = config
        self._graph = graph
        self._instructions = instructions
        self._voice = voice
        self._journal = Journal(config.journal_units)
        self._outbox = Outbox()
        self._turns = Turns(config.output_rate)
        self._serials = dict.fromkeys(graph.stages, 0)
        self._feed = Feed(session, graph, self._send)
        self._injected = 0
        self._utterance_base = 0
        self._next_utterance = 0
        self._rebuilt_after_failure = False
        self._continue_by: dict[int, int] = {}
        """Replies a rebuilt thinker must go on with, and the unit by which it must."""
        self._rebuild(graph.stages)

    # --- the agent's side -----------------------------------------------------------------------------------

    def append(self, unit: Unit) -> None:
        """Take the next unit. Raises ``Overrun`` or ``ValueError``, and then has not taken it."""
        if self.over:
            self._drop("unit", "session_over")
            return
        samples = self._config.unit_samples
        if unit.index != self.units:
            raise ValueError(f"unit {unit.index} given, but the next one is {self.units}")
        if unit.pcm.shape != (samples,) or unit.pcm.dtype != np.int16:
            raise ValueError(
                f"a unit is int16 of shape ({samples},), not {unit.pcm.dtype} of shape {unit.pcm.shape}")
        if self.units - self.decided >= self._config.max_pending_units:
            raise Overrun(f"{self.units - self.decided} units wait for a decision")
        self.units += 1
        self._drop("unit", "journal_full", self._journal.keep(unit, self.decided))
        self._send(self._graph.thinker, AppendUnit(self.session, self.epoch, unit))

    def inject(self, item: CallerText) -> None:
        """Take text from the caller. Raises ``Overrun`` when too much waits for the thinker."""
        if self.over:
            return
        if self._injected >= MAX_INJECTED:
            raise Overrun(f"{self._injected} items wait for a decision")
        self._injected += 1
        self._record(Heard(item.text, self.units))
        self._send(self._graph.thinker, Inject(self.session, self.epoch, item))

    def interrupt(self, number: int, heard_samples: int) -> str:
        """Void the present epoch; cut reply ``number`` at ``heard_samples``. Returns what was heard of it.

        Every other reply whose end the agent does not know is cut too: one before it was heard as far as its
        audio came out, one after it not at all. A reply that was cut before stays as it is, and so does the epoch.
        """
        named = self._turns.get(number)
        if named is not None and named.heard is not None:
            return named.heard
        if self.over:
            return self._turns.heard(named, min(heard_samples, named.surfaced_samples)) if named else ""
        self.epoch += 1
        self._drop("message", "stale", self._feed.raise_epoch(self.epoch))
        cut = self._turns.cut(number, heard_samples)
        heard = {turn.number: text for turn, text in cut}
        surfaced = {turn.number for turn, _ in cut if turn is named or turn.surfaced}
        self._drop("message", "stale", self._outbox.raise_epoch(self.epoch, heard, surfaced))
        for turn, text in cut:
            self._record(Cut(turn.number, text, self.epoch))
            turn.heard = text
            if turn.open:
                self._end_turn(turn, TurnStatus.INTERRUPTED, text, tell=turn.number in surfaced)
        # The last stage first, so that none is given anything of the new epoch before it knows of it; and once, since
        # a second word of the same epoch would void what it was given meanwhile.
        for stage in reversed(self._graph.voice):
            self._send(stage, Interrupt(self.session, self.epoch))
        last = self._turns.last
        for turn, text in cut:
            self._send(self._graph.thinker, Interrupt(self.session, self.epoch, turn.number, text, last))
        if not cut:
            self._send(self._graph.thinker, Interrupt(self.session, self.epoch, last_turn=last))
        return heard.get(number, "")

    def close(self) -> None:
        """End the session; a reply that is open ends as interrupted. Idempotent."""
        if self.over:
            return
        for turn in self._turns.open:
            self._end_turn(turn, TurnStatus.INTERRUPTED, self._turns.heard(turn, turn.samples), "closed")
        self._finish()

    def history(self) -> tuple[HistoryItem, ...]:
        """What was said by both, in order, each reply as far as it was heard or has been written."""
        return self._journal.history()

    @property
    def waiting(self) -> tuple[EngineEvent, ...]:
        """The events that ``pop`` has not given yet, in order."""
        return self._outbox.waiting

    def split(self, at: int, samples: int) -> None:
        """Have ``pop`` give the chunk of audio that is ``at``-th of ``waiting`` as two, the first of ``samples``."""
        self._outbox.split(at, samples)

    def pop(self, at: int = 0) -> EngineEvent | None:
        """Give the next event, or the ``at``-th after it, if there is one."""
        return self._outbox.pop(self._turns, at)

    # --- the stages' side -----------------------------------------------------------------------------------

    def receive(self, stage: str, serial: int, message: StageOutput) -> None:
        """Take an output of ``stage``."""
        if self.over or serial != self._serials[stage]:
            self._drop("message", "stale")
            return
        match message:
            case Decision():
                self._decision(message)
            case CallerWords():
                self._words(message)
            case SessionFailed():
                self._stage_failed(stage)
            case ReplyText() | CodecFrames() | ReplyAudio():
                turn = self._turn_of(message.fence)
                if turn is None:
                    self._drop("message", "stale")
                    if isinstance(message, CodecFrames):
                        self._feed.drop(stage)
                elif isinstance(message, ReplyText):
                    self._text(turn, message)
                elif isinstance(message, ReplyAudio):
                    turn.early.append(message)
                    self._audio_with_text(turn)
                else:
                    self._frames(turn, stage, message)
        if self._outbox.full and not self.over:
            self._drop("event", "unread")
            self._give_up("the agent does not read the session's events")

    def taken(self, stage: str, serial: int, count: int) -> None:
        """Note that ``stage`` has filed ``count`` messages of its incoming edge."""
        if not self.over and serial == self._serials[stage]:
            self._feed.taken(stage, count)
            self._feed.text(self._turns.open, self.epoch)

    def lost(self, stages: Iterable[str], detail: str) -> None:
        """Note that a process with these stages died; it is being restarted."""
        for stage in stages:
            self._emit(Health(stage, up=False, detail=detail))

    def leave(self, stages: Iterable[str]) -> None:
        """Close the session in these stages: it is about to be rebuilt elsewhere."""
        for stage in stages:
            self._send(stage, Close(self.session))

    def restored(self, stages: Iterable[str]) -> None:
        """Rebuild the session in these stages, whose process runs again."""
        if self.over:
            return
        rebuilt: dict[str, None] = {}
        for stage in stages:
            self._emit(Health(stage, up=True))
            rebuilt |= dict.fromkeys(self._graph.rebuilt_with(stage))
        self._rebuild(rebuilt)

    def given_up(self, stages: Iterable[str], detail: str) -> None:
        """End the session: a process with these stages died and is not started again."""
        for stage in stages:
            self._emit(Health(stage, up=False, detail=detail))
        self._give_up(detail)

    # --- what the stages say --------------------------------------------------------------------------------

    def _decision(self, decision: Decision) -> None:
        if decision.unit < self.decided:
            self._drop("message", "duplicate")
            return
        if decision.unit > self.decided:
            self._stage_failed(self._graph.thinker)
            return
        self.decided += 1
        self._injected = 0
        if decision.tokens:
            self._drop("journal", "full", self._journal.answered(
                Decided(decision.unit, decision.turn, decision.tokens, decision.epoch)))
        self._emit(decision if decision.epoch == self.epoch else void(decision, self.epoch))
        for turn in self._turns.open:
            if self.decided >= self._continue_by.get(turn.number, math.inf):
                self._fail_turn(turn, "the reply could not be continued after a restart")

    def _words(self, words: CallerWords) -> None:
        utterance = self._utterance_base + words.utterance
        self._next_utterance = max(self._next_utterance, utterance + 1 if words.final else utterance)
        if words.final:
            self._drop("journal", "full",
                       self._journal.understood(words.last_unit, words.text, self.decided))
        self._emit(replace(words, utterance=utterance))

    def _text(self, turn: Turn, text: ReplyText) -> None:
        if text.fence.seq < turn.text_seq:
            self._drop("message", "duplicate")
            return
        if text.fence.seq > turn.text_seq or text.start != len(turn.text) or turn.text_whole:
            self._fail_turn(turn, "a piece of the reply's text is missing")
            return
        self._continue_by.pop(turn.number, None)
        turn.write(text)
        self._record(Said(turn.number, text.text, text.last))
        self._emit(text)
        if self._graph.nodes[self._graph.thinker].direct:
            turn.sent, turn.sent_last = len(turn.text), turn.text_whole
        else:
            self._feed.text(self._turns.open, self.epoch)
        self._audio_with_text(turn)

    def _frames(self, turn: Turn, stage: str, frames: CodecFrames) -> None:
        try:
            if not self._feed.frames(stage, frames):
                self._drop("message", "duplicate")
        except Missing as missing:
            self._fail_turn(turn, str(missing))

    def _audio_with_text(self, turn: Turn) -> None:
        """Take the audio whose text has come: past the hub, text may reach its ear before it reaches its record."""
        while turn.open and turn.early and turn.wrote(turn.early[0]):
            self._audio(turn, turn.early.popleft())

    def _audio(self, turn: Turn, audio: ReplyAudio) -> None:
        if audio.fence.seq < turn.audio_seq:
            self._drop("message", "duplicate")
            return
        if audio.fence.seq > turn.audio_seq:
            self._fail_turn(turn, "a piece of the reply's audio is missing")
            return
        turn.audio_seq += 1
        spans = tuple(replace(span, first_sample=span.first_sample + turn.audio_base,
                              end_sample=span.end_sample + turn.audio_base) for span in audio.spans)
        self._emit(replace(audio, first_sample=turn.samples, spans=spans))
        self._turns.grow(turn, len(audio.pcm), spans)
        if audio.last:
            self._end_turn(turn, TurnStatus.DONE, turn.text)

    # --- replies --------------------------------------------------------------------------------------------

    def _turn_of(self, fence: Fence) -> Turn | None:
        """The open reply a message belongs to; None when the message is stale."""
        if fence.epoch != self.epoch:
            return None
        if fence.turn > self._turns.last:
            oldest = self._turns.begin(fence.turn)
            if oldest is not None and oldest.open:
                self._fail_turn(oldest, "too many replies were begun after it")
        turn = self._turns.get(fence.turn)
        return turn if turn is not None and turn.open else None

    def _fail_turn(self, turn: Turn, reason: str) -> None:
        self._record(GivenUp(turn.number))
        self._end_turn(turn, TurnStatus.FAILED, turn.text, reason)

    def _end_turn(self, turn: Turn, status: TurnStatus, text: str, reason: str = "", *,
                  tell: bool = True) -> None:
        turn.status = status
        self._continue_by.pop(turn.number, None)
        if tell:
            self._emit(TurnEnd(self.session, self.epoch, turn.number, status, text, reason))

    # --- rebuilding -----------------------------------------------------------------------------------------

    def _stage_failed(self, stage: str) -> None:
        """Rebuild the session once after its own failure in a stage; give it up the second time."""
        if self._rebuilt_after_failure:
            self._emit(Health(stage, up=False, detail="the session failed there again"))
            self._give_up("the session failed twice")
            return
        self._rebuilt_after_failure = True
        for turn in self._turns.open:
            self._fail_turn(turn, f"stage {stage} failed")
        self._rebuild(self._graph.rebuilt_with(stage))

    def _rebuild(self, stages: Iterable[str]) -> None:
        """Give these stages a new life of the session, from the journal."""
        stages = [stage for stage in self._graph.stages if stage in set(stages)]
        thinker = self._graph.thinker in stages
        if thinker:
            self._thinker_starts_over()
        opening = self._journal.opening(Open(self.session, self.epoch, self._turns.last + 1, self.units,
                                             self._instructions, self._voice, decided=self.decided))
        # The last stage first: what a stage says from its first moment finds the next one open.
        for stage in reversed(stages):
            self._serials[stage] += 1
            if stage in self._graph.voice:
                self._feed.start_over(stage, self._serials[stage])
            self._send(stage, opening if stage == self._graph.thinker else replace(opening, outputs=()))
        if set(stages).intersection(self._graph.voice[:1]):
            self._voice_starts_over()
        if thinker:
            for unit in self._journal.units:
                self._send(self._graph.thinker, AppendUnit(self.session, self.epoch, unit))

    def _thinker_starts_over(self) -> None:
        # Its numbers of utterances and of a reply's messages start from 0 again.
        self._utterance_base = self._next_utterance
        self._injected = 0
        unfinished = [turn for turn in self._turns.open if not turn.text_whole]
        for turn in unfinished[:-1]:
            self._fail_turn(turn, "another reply was begun before its text was whole")
        for turn in unfinished[-1:]:
            turn.text_seq = 0
            self._continue_by[turn.number] = self.decided + math.ceil(CONTINUE_WITHIN_S / self._config.unit_s)

    def _voice_starts_over(self) -> None:
        for turn in self._turns.open:
            turn.audio_seq, turn.audio_base = 0, turn.samples
            turn.early.clear()
            turn.sent, turn.sent_seq, turn.sent_last = len(self._turns.heard(turn, turn.samples)), 0, False
            if turn.text_whole and not any(char.isalnum() for char in turn.text[turn.sent:]):
                # Every word was spoken; only the mark of the end was lost.
                fence = Fence(self.session, self.epoch, turn.number, 0)
                self._audio(turn, ReplyAudio(fence, 0, np.zeros(0, np.int16), last=True))
        self._feed.text(self._turns.open, self.epoch)

    # --- ending and the small things ------------------------------------------------------------------------

    def _give_up(self, reason: str) -> None:
        for turn in self._turns.open:
            self._fail_turn(turn, reason)
        self._finish()

    def _finish(self) -> None:
        for stage in self._graph.stages:
            self._send(stage, Close(self.session))
        self.over = True

    def _emit(self, event: EngineEvent) -> None:
        if not self.over:
            self._outbox.put(event)

    def _send(self, stage: str, message: StageInput | Filed, number: int = 0) -> None:
        self.sends.append(ToStage(stage, self._serials[stage], message, number))

    def _record(self, record: Heard | Said | Cut | GivenUp) -> None:
        self._drop("journal", "full", self._journal.write(record))

    def _drop(self, what: str, reason: str, count: int = 1) -> None:
        if count:
            self.drops[what, reason] += count
