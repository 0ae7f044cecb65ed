"""A session of the thinker with a scripted ear, and what every one of its outputs must keep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import numpy as np
from hypothesis import strategies as st

from duologue.engine.messages import (
    CallerText,
    CallerWords,
    Decision,
    HistoryItem,
    Interrupt,
    Open,
    ReplyText,
    StageOutput,
    Tool,
    ToolCall,
    Unit,
)
from duologue.engine.models.embedded.agreement import NOTHING, Understanding
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import Sentence, Trust
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.endpoint import Patience
from duologue.engine.models.embedded.lexicon import Lexicon
from duologue.engine.models.embedded.mind import Mind
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.thinking.turns import Considered
from duologue.engine.models.embedded.thinking.wit import Thought
from duologue.engine.models.embedded.turns import Ruled
from duologue.engine.models.embedded.utterance import Utterance

UNIT_MS = 80
SILENCE = np.zeros(1280, np.int16)


class ScriptedEar(Ear):
    """Hears what it is told: a list of words so far, one for each unit; the last one ends the utterance."""

    def __init__(self) -> None:
        self.utterance: Utterance | None = None
        self.script: list[Understanding] = []
        self.count = 0

    def hear(self, unit: Unit, *, over_reply: bool) -> Utterance | None:
        if not self.script:
            return None
        if self.utterance is None:
            self.utterance = Utterance(self.count, unit.index, over_reply, unit.index, UNIT_MS)
            self.count += 1
        current = self.utterance
        understanding = self.script.pop(0)
        current.settled = understanding == current.understanding
        current.understanding = understanding
        current.spoken_units += 1
        current.last_speech = unit.index
        if not self.script:
            current.ended = True
            self.utterance = None
        return current

    def close(self) -> None:
        self.utterance = None


def whole(text: str) -> Understanding:
    return Understanding(Sentence(text), grammar().read(text.split())) if text else NOTHING


def untrusted(text: str) -> Understanding:
    return Understanding(Sentence(text, Trust.NONE), NOTHING.reading)


def growing(text: str, make: Callable[[str], Understanding] = whole) -> list[Understanding]:
    """A word more every four units, and three units of silence."""
    words = text.split()
    return [make(" ".join(words[:i // 4 + 1])) for i in range(4 * len(words))] + [make(text)] * 3


class Session:
    def __init__(self, lexicon: Lexicon, *, greeting: str = "", history: tuple[HistoryItem, ...] = (),
                 next_turn: int = 0, next_unit: int = 0, decided: int = 0, tools: tuple[Tool, ...] = (),
                 auto: bool = True, record: Record | None = None) -> None:
        """``record``: of a trained thinker, which then has the say."""
        self.ear = ScriptedEar()
        self.dialogue = Dialogue("test", greeting, tools, Thought(record) if record else None)
        self.epoch = 0
        self.units = next_unit
        opening = Open("s", 0, next_turn, next_unit, tools=tools, auto_respond=auto, history=history, decided=decided)
        turns = Considered(record) if record else Ruled(self.dialogue, Patience())
        self.mind = Mind(opening, self.dialogue, self.ear, turns, lexicon, UNIT_MS,
                         lambda: datetime(2026, 11, 21, 14, 5))
        self.texts: dict[int, str] = {}
        self.whole: set[int] = set()
        self.epochs: dict[int, int] = {}
        self.seqs: dict[int, int] = {}
        self.decisions: list[Decision] = []
        self.words: list[CallerWords] = []
        self.calls: list[ToolCall] = []

    def unit(self, audible: bool = False) -> list[StageOutput]:
        outputs = self.mind.hear(Unit(self.units, SILENCE, 0.0, 0, 1280 if audible else 0))
        decisions = [output for output in outputs if isinstance(output, Decision)]
        assert [decision.unit for decision in decisions] == [self.units]
        assert decisions[0].epoch == self.epoch
        self.decisions += decisions
        self.units += 1
        for output in outputs:
            if isinstance(output, CallerWords):
                self.words.append(output)
            elif isinstance(output, ToolCall):
                self.calls.append(output)
            elif isinstance(output, ReplyText):
                self.write(output)
        return outputs

    def write(self, piece: ReplyText) -> None:
        turn = piece.fence.turn
        assert piece.fence.epoch == self.epoch
        assert self.epochs.setdefault(turn, self.epoch) == self.epoch, "a reply goes on in a later epoch"
        assert turn >= max(self.texts, default=turn), "an older reply goes on"
        assert piece.fence.seq == self.seqs.get(turn, 0)
        assert turn not in self.whole
        self.seqs[turn] = piece.fence.seq + 1
        self.texts[turn] = self.texts.get(turn, "") + piece.text
        if piece.last:
            self.whole.add(turn)

    def go(self, units: int, *, audible: bool = False) -> None:
        for _ in range(units):
            self.unit(audible)

    def say(self, script: list[Understanding], *, audible: bool = False) -> None:
        self.ear.script = list(script)
        while self.ear.script:
            self.unit(audible)

    def cut(self, turn: int | None, heard: str = "") -> None:
        self.epoch += 1
        self.mind.interrupt(Interrupt("s", self.epoch, turn, heard))

    @property
    def last(self) -> str:
        return self.texts[max(self.texts)]

    @property
    def current(self) -> set[int]:
        """The replies of the present epoch."""
        return {turn for turn, epoch in self.epochs.items() if epoch == self.epoch}

    @property
    def yields(self) -> list[int]:
        return [decision.unit for decision in self.decisions if decision.yields]


Event = tuple[str, int | str, bool]
_SENTENCES = ("count to thirty", "what time is it", "stop", "yeah", "tell me a story", "remind me to", "go on",
              "remind me to stretch in two seconds", "what was the last thing you said", "slower", "two plus two")
EVENTS = st.lists(st.one_of(
    st.tuples(st.just("units"), st.integers(1, 25), st.booleans()),
    st.tuples(st.just("say"), st.sampled_from(_SENTENCES), st.booleans()),
    st.tuples(st.just("noise"), st.integers(1, 15), st.booleans()),
    st.tuples(st.just("type"), st.sampled_from(_SENTENCES), st.booleans()),
    st.tuples(st.just("cut"), st.integers(0, 4), st.booleans())), max_size=25)
"""What may happen in a session."""


def live(session: Session, events: list[Event]) -> None:
    """Let ``events`` happen."""
    for kind, value, flag in events:
        match kind, value:
            case "units", int(count):
                session.go(count, audible=flag)
            case "say", str(text):
                session.say(growing(text), audible=flag)
            case "noise", int(count):
                session.ear.script = [untrusted("zebra crossing")] * count
                session.go(count // 2, audible=flag)
            case "type", str(text):
                session.mind.inject(CallerText(text))
            case "cut", int(back):
                turn = max(session.texts, default=0) - back
                known = turn in session.texts
                session.cut(turn if known else None, session.texts[turn][:7] if known and flag else "")
