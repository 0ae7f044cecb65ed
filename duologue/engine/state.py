"""What a session is, without I/O: calls of the agent and messages of the stages in, events and sends out.

The rules this file keeps, whatever order things come in:

* Exactly one decision for every unit, in order.
* A reply's text and audio come once and in order, and exactly one terminal event ends it.
* Nothing of an epoch before the present one is emitted.
* A tool's work is asked for once, whatever interrupts or dies, and answered once.
* A stage that was lost is rebuilt from the journal, and its replies go on.

Every stage holds one life of the session at a time, from one ``Open`` to the next, named by a serial number;
messages of an earlier life are stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from duologue.engine.brief import Brief
from duologue.engine.calls import Calls
from duologue.engine.config import PipelineConfig
from duologue.engine.effects import Effects
from duologue.engine.feed import Feed
from duologue.engine.journal import Called, Heard, Returned
from duologue.engine.messages import (
    AppendUnit,
    CallerText,
    CallerWords,
    Close,
    CodecFrames,
    Decided,
    Decision,
    EngineEvent,
    Health,
    HistoryItem,
    Inject,
    Instructions,
    Interrupt,
    Item,
    Open,
    ReplyAudio,
    ReplyText,
    Respond,
    SessionFailed,
    StageOutput,
    ToolCall,
    ToolResult,
    Tools,
    TurnStatus,
    Unit,
)
from duologue.engine.outbox import void
from duologue.engine.pipeline import Graph
from duologue.engine.replies import Replies
from duologue.engine.wanted import Wanted
from duologue.engine.wire import ToStage

MAX_INJECTED = 64
"""Items and requests for a reply that may be given between two decisions."""


class Overrun(Exception):  # noqa: N818 - the name of the condition
    """The session has as much waiting for a decision as it may; what was given was not taken."""


class SessionState:
    """One session; whoever holds it carries out ``take_sends`` after every call and ``pop``s the events."""

    def __init__(self, session: str, config: PipelineConfig, graph: Graph, brief: Brief | None = None) -> None:
        self.session = session
        self.units = 0
        """Units given so far, which is the next one's index."""
        self.decided = 0
        """Units whose decision has been emitted."""
        self._config = config
        self._graph = graph
        self._brief = brief or Brief()
        self._effects = Effects(config, graph)
        self._journal = self._effects.journal
        self._feed = Feed(session, graph, self._effects.send)
        self._replies = Replies(session, config, graph, self._effects, self._feed)
        self._turns = self._replies.turns
        self._calls = Calls()
        self._wanted = Wanted()
        self._injected = 0
        self._utterance_base = 0
        self._next_utterance = 0
        self._rebuilt_after_failure = False
        self._rebuild(graph.stages)

    @property
    def brief(self) -> Brief:
        """What the session is told of its part now."""
        return self._brief

    @property
    def epoch(self) -> int:
        """The present epoch."""
        return self._replies.epoch

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._effects.over

    @property
    def drops(self) -> Counter[tuple[str, str]]:
        """What was dropped and why, since this was cleared."""
        return self._effects.drops

    def take_sends(self) -> list[ToStage]:
        """What the stages are to be given now, in order."""
        sends, self._effects.sends = self._effects.sends, []
        return sends

    # --- the agent's side -----------------------------------------------------------------------------------

    def reopen(self, brief: Brief) -> None:
        """Begin again with another brief. Raises ``ValueError`` once a unit or an item was given."""
        if self.units or self._injected:
            raise ValueError("a session that was given something keeps its voice and its way of replying")
        if not self.over:
            self._brief = brief
            self._rebuild(self._graph.stages)

    def append(self, unit: Unit) -> None:
        """Take the next unit. Raises ``Overrun`` or ``ValueError``, and then has not taken it."""
        if self.over:
            self._effects.drop("unit", "session_over")
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
        self._effects.drop("unit", "journal_full", self._journal.keep(unit, self.decided))
        self._effects.send(self._graph.thinker, AppendUnit(self.session, self.epoch, unit))

    def inject(self, item: Item) -> None:
        """Take an item between two units.

        Raises ``Overrun`` when too much waits for the thinker, ``ValueError`` for the result of a call that is not
        open and for tools that cannot be called; the item was not taken then.
        """
        if self.over:
            return
        self._check_room()
        match item:
            case CallerText():
                self._effects.record(Heard(item.text, self.units))
            case ToolResult():
                self._calls.answer(item.call)
                self._effects.record(Returned(item.call, item.output))
            case Instructions() | Tools():
                self._brief = self._brief.after(item)
        self._injected += 1
        self._effects.send(self._graph.thinker, Inject(self.session, self.epoch, item))

    def respond(self, instructions: str = "") -> None:
        """Ask for a reply. Raises ``Overrun``, and ``ValueError`` in a session that replies by itself."""
        if self._brief.auto_respond:
            raise ValueError("this session replies by itself; open it with auto_respond=False to ask it for replies")
        if self.over:
            return
        self._check_room()
        self._injected += 1
        self._wanted.ask(Respond(self.session, self.epoch, instructions), self.units)
        self._ask()

    def _check_room(self) -> None:
        if self._injected >= MAX_INJECTED:
            raise Overrun(f"{self._injected} items wait for a decision")

    def _ask(self) -> None:
        """Give the thinker the request for a reply that has not been answered, if there is one."""
        for request in self._wanted.request(self.epoch):
            self._effects.send(self._graph.thinker, request)

    def interrupt(self, number: int, heard_samples: int) -> str:
        """Void the present epoch; cut reply ``number`` at ``heard_samples``. Returns what was heard of it.

        Every other reply whose end the agent does not know is cut too: one before it was heard as far as its
        audio came out, one after it not at all. A reply that was cut before stays as it is, and so does the epoch.
        A request for a reply that nothing came of is taken back, unless what is cut is a reply of before.
        """
        named = self._turns.get(number)
        if named is not None and named.heard is not None:
            return named.heard
        if self.over:
            return self._turns.heard(named, min(heard_samples, named.surfaced_samples)) if named else ""
        if named is None or named.open:
            self._wanted.take_back()
        cut = self._replies.cut(number, heard_samples)
        # The last stage first, so that none is given anything of the new epoch before it knows of it; and once, since
        # a second word of the same epoch would void what it was given meanwhile.
        for stage in reversed(self._graph.voice):
            self._effects.send(stage, Interrupt(self.session, self.epoch))
        last = self._turns.last
        for turn, text in cut:
            self._effects.send(self._graph.thinker, Interrupt(self.session, self.epoch, turn.number, text, last))
        if not cut:
            self._effects.send(self._graph.thinker, Interrupt(self.session, self.epoch, last_turn=last))
        self._ask()
        return next((text for turn, text in cut if turn.number == number), "")

    def close(self) -> None:
        """End the session; a reply that is open ends as interrupted. Idempotent."""
        if self.over:
            return
        for turn in self._turns.open:
            self._replies.end(turn, TurnStatus.INTERRUPTED, self._turns.heard(turn, turn.samples), "closed")
        self._finish()

    def history(self) -> tuple[HistoryItem, ...]:
        """What was said by both and asked of tools, in order, each reply as far as it was heard or has been written."""
        return self._journal.history()

    @property
    def waiting(self) -> tuple[EngineEvent, ...]:
        """The events that ``pop`` has not given yet, in order."""
        return self._effects.outbox.waiting

    def split(self, at: int, samples: int) -> None:
        """Have ``pop`` give the chunk of audio that is ``at``-th of ``waiting`` as two, the first of ``samples``."""
        self._effects.outbox.split(at, samples)

    def pop(self, at: int = 0) -> EngineEvent | None:
        """Give the next event, or the ``at``-th after it, if there is one."""
        return self._effects.outbox.pop(self._turns, at)

    # --- the stages' side -----------------------------------------------------------------------------------

    def receive(self, stage: str, serial: int, message: StageOutput) -> None:
        """Take an output of ``stage``."""
        if self.over or serial != self._effects.serials[stage]:
            self._effects.drop("message", "stale")
            return
        match message:
            case Decision():
                self._decision(message)
            case CallerWords():
                self._words(message)
            case ToolCall():
                self._tool_call(message)
            case SessionFailed():
                self._stage_failed(stage)
            case ReplyText() | CodecFrames() | ReplyAudio():
                self._reply(stage, message)
        if self._effects.outbox.full and not self.over:
            self._effects.drop("event", "unread")
            self._give_up("the agent does not read the session's events")

    def taken(self, stage: str, serial: int, count: int) -> None:
        """Note that ``stage`` has filed ``count`` messages of its incoming edge."""
        if not self.over and serial == self._effects.serials[stage]:
            self._feed.taken(stage, count)
            self._replies.feed()

    def lost(self, stages: Iterable[str], detail: str) -> None:
        """Note that a process with these stages died; it is being restarted."""
        for stage in stages:
            self._effects.emit(Health(stage, up=False, detail=detail))

    def leave(self, stages: Iterable[str]) -> None:
        """Close the session in these stages: it is about to be rebuilt elsewhere."""
        for stage in stages:
            self._effects.send(stage, Close(self.session))

    def restored(self, stages: Iterable[str]) -> None:
        """Rebuild the session in these stages, whose process runs again."""
        if self.over:
            return
        rebuilt: dict[str, None] = {}
        for stage in stages:
            self._effects.emit(Health(stage, up=True))
            rebuilt |= dict.fromkeys(self._graph.rebuilt_with(stage))
        self._rebuild(rebuilt)

    def given_up(self, stages: Iterable[str], detail: str) -> None:
        """End the session: a process with these stages died and is not started again."""
        for stage in stages:
            self._effects.emit(Health(stage, up=False, detail=detail))
        self._give_up(detail)

    # --- what the stages say --------------------------------------------------------------------------------

    def _decision(self, decision: Decision) -> None:
        if decision.unit < self.decided:
            self._effects.drop("message", "duplicate")
            return
        if decision.unit > self.decided:
            self._stage_failed(self._graph.thinker)
            return
        self.decided += 1
        self._injected = 0
        if decision.tokens:
            self._effects.drop("journal", "full", self._journal.answered(
                Decided(decision.unit, decision.turn, decision.tokens, decision.epoch)))
        self._effects.emit(decision if decision.epoch == self.epoch else void(decision, self.epoch))
        self._replies.fail_late(self.decided)

    def _words(self, words: CallerWords) -> None:
        utterance = self._utterance_base + words.utterance
        self._next_utterance = max(self._next_utterance, utterance + 1 if words.final else utterance)
        if words.final:
            self._effects.drop("journal", "full",
                               self._journal.understood(words.last_unit, words.text, self.decided))
        self._effects.emit(replace(words, utterance=utterance))

    def _tool_call(self, call: ToolCall) -> None:
        if not self._calls.ask(call.call):
            self._effects.drop("message", "duplicate")
            return
        self._wanted.answered(self.decided)
        self._effects.record(Called(call.call, call.name, call.arguments, self.decided))
        self._effects.emit(call)

    def _reply(self, stage: str, message: ReplyText | CodecFrames | ReplyAudio) -> None:
        turn = self._replies.of(message.fence)
        if turn is None:
            self._effects.drop("message", "stale")
            if isinstance(message, CodecFrames):
                self._feed.drop(stage)
        elif isinstance(message, ReplyText):
            if message.fence.seq == message.start == 0:
                self._wanted.answered(self.decided)
            self._replies.text(turn, message)
        elif isinstance(message, ReplyAudio):
            self._replies.audio(turn, message)
        else:
            self._replies.frames(turn, stage, message)

    # --- rebuilding -----------------------------------------------------------------------------------------

    def _stage_failed(self, stage: str) -> None:
        """Rebuild the session once after its own failure in a stage; give it up the second time."""
        if self._rebuilt_after_failure:
            self._effects.emit(Health(stage, up=False, detail="the session failed there again"))
            self._give_up("the session failed twice")
            return
        self._rebuilt_after_failure = True
        for turn in self._turns.open:
            self._replies.fail(turn, f"stage {stage} failed")
        self._rebuild(self._graph.rebuilt_with(stage))

    def _rebuild(self, stages: Iterable[str]) -> None:
        """Give these stages a new life of the session, from the journal."""
        stages = [stage for stage in self._graph.stages if stage in set(stages)]
        thinker = self._graph.thinker in stages
        if thinker:
            # Its numbers of utterances start from 0 again.
            self._utterance_base, self._injected = self._next_utterance, 0
            self._replies.thinker_starts_over(self.decided)
        brief = self._brief
        opening = self._journal.opening(Open(
            self.session, self.epoch, self._turns.last + 1, self.units, brief.instructions, brief.voice, brief.tools,
            brief.auto_respond, decided=self.decided))
        # The last stage first: what a stage says from its first moment finds the next one open.
        for stage in reversed(stages):
            self._effects.serials[stage] += 1
            if stage in self._graph.voice:
                self._feed.start_over(stage, self._effects.serials[stage])
            self._effects.send(stage, opening if stage == self._graph.thinker else replace(opening, outputs=()))
        if set(stages).intersection(self._graph.voice[:1]):
            self._replies.voice_starts_over()
        if thinker:
            self._replay()

    def _replay(self) -> None:
        """Give a new thinker what its history does not tell: units, and the request for a reply in its place."""
        place = self._wanted.place(self.decided)
        for unit in self._journal.units:
            if unit.index == place:
                self._ask()
            self._effects.send(self._graph.thinker, AppendUnit(self.session, self.epoch, unit))
        if place >= self.units:
            self._ask()

    # --- ending and the small things ------------------------------------------------------------------------

    def _give_up(self, reason: str) -> None:
        for turn in self._turns.open:
            self._replies.fail(turn, reason)
        self._finish()

    def _finish(self) -> None:
        for stage in self._graph.stages:
            self._effects.send(stage, Close(self.session))
        self._effects.over = True
