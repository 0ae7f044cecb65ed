"""One call's dialogue: answers with a memory that knows only what was heard, and can be rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from duologue.engine.messages import AgentSaid, CallerSaid, HistoryItem, Tool, ToolCalled
from duologue.engine.models.embedded.dialogue import reminders
from duologue.engine.models.embedded.dialogue.calling import Request, request, wanted
from duologue.engine.models.embedded.dialogue.errands import Errands
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Reminder, Said
from duologue.engine.models.embedded.dialogue.policy import (
    Answer,
    Sentence,
    Trust,
    is_backchannel,
    typed,
)
from duologue.engine.models.embedded.dialogue.telling import tell
from duologue.engine.models.embedded.dialogue.templates import Parse
from duologue.engine.models.embedded.dialogue.wit import Rules, Wit

_TURNS_KEPT = 16
"""Replies that can still be taken back; more are never under way at once."""
_BUSY = "One moment, I am still waiting for the answer to the last question."
_UNHEARD = "I have not heard anything."


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a reply answered, and the memory before it did."""

    sentence: Sentence | None
    before: Memory
    told: tuple[str, str] | None = None
    """The call whose result it told, and that result."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """A reply to go on with: turn, whole text, and how much of it has been written."""

    turn: int
    answer: Answer
    written: int


class Dialogue:
    """``seed`` makes its choices: the same seed and the same words give the same replies."""

    def __init__(self, seed: str, greeting: str, tools: Sequence[Tool] = (), wit: Wit | None = None) -> None:
        self.memory = Memory()
        self._wit = wit or Rules()
        self._seed = seed
        self._greeting = greeting
        self._asked: dict[int, _Asked] = {}
        self.errands = Errands(tools)

    def understand(self, sentence: Sentence) -> Sentence:
        """``sentence``, which is understood if it asks for a tool."""
        return replace(sentence, trust=Trust.WHOLE) if self._asks(sentence) else sentence

    def _asks(self, sentence: Sentence) -> bool:
        return wanted(self.errands.skills, sentence.words.split(), _parse(sentence)) is not None

    def joined(self, earlier: Sentence | None, later: Sentence) -> Sentence:
        """What to answer when ``later`` was said before ``earlier`` was answered."""
        return self._wit.joined(earlier, later)

    def greet(self, turn: int) -> Answer | None:
        """What is said at the start of a call."""
        return self._say(turn, None, self.memory, self._answer(self._greeting, "greeting"))

    def answer(self, sentence: Sentence, turn: int, now: datetime, at: float) -> Answer | Request | None:
        """The reply of ``turn`` to ``sentence``, ``at`` seconds into the call; or the tool's call it asks for."""
        before = self.memory
        asked = request(self.errands.skills, sentence.words.split(), _parse(sentence), before.asking)
        if asked is not None:
            noted = _asked_for(before, sentence)
            if self.errands.waiting is not None:
                self.memory = noted
                return self._say(turn, sentence, before, self._answer(_BUSY, "busy"))
            if isinstance(asked, Request):
                self.memory = noted
                self._wit.passed(sentence)
                return asked
            self.memory = replace(noted, asking=asked.asking)
            return self._say(turn, sentence, before, self._answer(asked.text, "ask_back"))
        context = Context(sentence.words, now, at, Random(f"{self._seed}/{turn}"))
        answer, self.memory = self._wit.respond(before, sentence, context)
        if answer is None:
            self._wit.passed(sentence)
        else:
            self.memory = replace(self.memory, asking=None)
        return self._say(turn, sentence, before, answer)

    def tell(self, turn: int) -> Answer | None:
        """The reply that tells the first result of a tool that has not been told; None when all have."""
        result = self.errands.result
        if result is None:
            return None
        self.errands.told(result[0])
        return self._say(turn, None, self.memory, self._answer(tell(result[1]), "result"), result)

    def admit(self, turn: int) -> Answer | None:
        """The reply where one is asked for and there is nothing to answer."""
        answer = (_UNHEARD, "unheard") if self.errands.waiting is None else (_BUSY, "busy")
        return self._say(turn, None, self.memory, self._answer(*answer))

    def due(self, at: float) -> Reminder | None:
        """The first reminder that is due."""
        due = [reminder for reminder in self.memory.reminders if reminder.due <= at]
        return min(due, key=lambda reminder: reminder.due, default=None)

    def remind(self, reminder: Reminder, turn: int) -> Answer | None:
        """The reply that announces ``reminder``, which is then done."""
        before = self.memory
        left = tuple(other for other in before.reminders if other != reminder)
        self.memory = replace(before, reminders=left)
        return self._say(turn, None, before, self._answer(reminders.announce(reminder), "reminder"))

    def cut(self, turn: int, heard: str) -> None:
        """Note that of reply ``turn`` the caller heard only ``heard``."""
        for said in self.memory.said:
            if said.turn == turn:
                self.memory = self.memory.noting(replace(said, heard=heard))
                self._wit.cut(turn, heard)

    def take_back(self, turn: int) -> Sentence | None:
        """Undo reply ``turn``, of which nothing was heard; returns what it answered.

        Replies after it are undone too: they rest on it.
        """
        asked = self._asked.pop(turn, None)
        if asked is None:
            return None
        self.memory = asked.before
        self._wit.undo(turn)
        undone = [asked, *(other for number, other in self._asked.items() if number > turn)]
        self.errands.untold([one.told for one in undone if one.told is not None])
        self._asked = {number: other for number, other in self._asked.items() if number < turn}
        return asked.sentence

    def rebuild(self, history: Sequence[HistoryItem], now: datetime,
                at: float) -> tuple[Continuation | None, Sentence | None]:
        """Live through ``history`` again; returns a reply to go on with and a sentence to answer still.

        The times of reminders are not in it: they run from now again.
        """
        continuation: Continuation | None = None
        waiting: Sentence | None = None
        murmur: Sentence | None = None
        unheard: int | None = None
        for item in history:
            if isinstance(item, CallerSaid):
                sentence = self.understand(typed(item.text))
                if is_backchannel(sentence.words) and not self.memory.offer:
                    murmur = sentence
                else:
                    waiting = self.joined(waiting, sentence)
                continue
            if isinstance(item, ToolCalled):
                self._call_again(item, waiting)
                waiting = murmur = None
                continue
            text = self._tell_again(item, waiting, unheard, now, at)
            if text is None:
                if waiting is None and murmur is not None and self._answers(self.memory, item, murmur, now, at):
                    waiting = murmur
                waiting = self._again(unheard, item, waiting, now, at)
                text = self._relive(item, waiting, now, at)
                waiting = murmur = None
            unheard = None if item.text or item.open else item.turn
            if item.open:
                answer = Answer(text.text, text.intent, self.memory.rate)
                continuation = Continuation(item.turn, answer, len(item.text))
        return continuation, waiting

    def _answers(self, memory: Memory, item: AgentSaid, sentence: Sentence, now: datetime, at: float) -> bool:
        """Whether reply ``item`` may be to ``sentence``: not every "yes" gets one, only one not over a reply."""
        context = Context(sentence.words, now, at, Random(f"{self._seed}/{item.turn}"))
        answer, _ = self._wit.respond(memory, sentence, context)
        return answer is not None and answer.text.startswith(item.text)

    def _again(self, unheard: int | None, item: AgentSaid, waiting: Sentence | None, now: datetime,
               at: float) -> Sentence | None:
        """What ``item`` answers: what is ``waiting``, or with it what reply ``unheard`` did, taken back then."""
        asked = self._asked.get(unheard) if unheard is not None and item.text else None
        if asked is None or asked.sentence is None or (
                waiting is not None and self._answers(self.memory, item, waiting, now, at)):
            return waiting
        again = asked.sentence if waiting is None else self.joined(asked.sentence, waiting)
        if unheard is None or not self._answers(asked.before, item, again, now, at):
            return waiting
        self.take_back(unheard)
        return again

    def _call_again(self, item: ToolCalled, waiting: Sentence | None) -> None:
        """Note a tool's call, and its result if it has come by now."""
        if waiting is not None:
            self.memory = _asked_for(self.memory, waiting)
            self._wit.passed(waiting)
        self.errands.called(item.call)
        if item.output is not None:
            self.errands.returned(item.call, item.output)

    def _tell_again(self, item: AgentSaid, waiting: Sentence | None, unheard: int | None, now: datetime,
                    at: float) -> Said | None:
        """Tell the result that reply ``item`` told, if it did; maybe once more, as nobody heard reply ``unheard``."""
        asked = self._asked.get(unheard) if unheard is not None and item.text else None
        if unheard is not None and asked is not None and asked.told is not None \
                and tell(asked.told[1]).startswith(item.text):
            self.take_back(unheard)
        result = self.errands.result
        if result is None or not tell(result[1]).startswith(item.text):
            return None
        if waiting is not None and (not item.text or self._answers(self.memory, item, waiting, now, at)):
            return None
        return self._lived(item, None, self.tell(item.turn))

    def _relive(self, item: AgentSaid, waiting: Sentence | None, now: datetime, at: float) -> Said:
        """Make reply ``item`` once more; where it comes out different, what was said is all there is of it."""
        before = self.memory
        answer: Answer | Request | None
        announced = next((reminder for reminder in before.reminders
                          if item.text and reminders.announce(reminder).startswith(item.text)), None)
        if item.text and _BUSY.startswith(item.text) and (waiting is None or self._asks(waiting)):
            self.memory = before if waiting is None else _asked_for(before, waiting)
            answer = self._say(item.turn, waiting, before, self._answer(_BUSY, "busy"))
        elif item.text and _UNHEARD.startswith(item.text) and waiting is None:
            answer = self._say(item.turn, waiting, before, self._answer(_UNHEARD, "unheard"))
        elif waiting is not None:
            answer = self.answer(waiting, item.turn, now, at)
        elif announced is not None:
            answer = self.remind(announced, item.turn)
        else:
            answer = self.greet(item.turn)
        said = self._lived(item, waiting, answer if isinstance(answer, Answer) else None)
        self._asked[item.turn] = _Asked(waiting, before)
        return said

    def _lived(self, item: AgentSaid, waiting: Sentence | None, answer: Answer | None) -> Said:
        """Note reply ``item`` to what was ``waiting``, made once more as ``answer``, as it was heard."""
        whole = answer.text if answer is not None and answer.text.startswith(item.text) else item.text
        intent = self.memory.said[-1].intent if answer is not None else "greeting"
        said = Said(item.turn, whole, item.text if not item.open else whole, intent)
        self.memory = self.memory.noting(said)
        if answer is None and whole:
            self._wit.said(item.turn, waiting, Answer(whole, intent, self.memory.rate))
        elif answer is not None and said.heard != answer.text:
            self._wit.cut(item.turn, said.heard)
        return said

    def _answer(self, text: str, intent: str) -> Answer | None:
        return Answer(text, intent, self.memory.rate) if text else None

    def _say(self, turn: int, sentence: Sentence | None, before: Memory, answer: Answer | None,
             told: tuple[str, str] | None = None) -> Answer | None:
        if answer is None:
            return None
        # A resumed count or story can be cut and resumed again.
        intent = answer.intent
        if intent in ("go_on", "again"):
            intent = _source(before, answer.text) or intent
        self.memory = self.memory.noting(Said(turn, answer.text, answer.text, intent))
        self._asked[turn] = _Asked(sentence, before, told)
        self._wit.said(turn, sentence, answer)
        while len(self._asked) > _TURNS_KEPT:
            self._asked.pop(next(iter(self._asked)))
        return answer


def _source(memory: Memory, text: str) -> str | None:
    """What the reply was about that ``text`` says the end of."""
    return next((said.intent for said in reversed(memory.said)
                 if said.text.lower().endswith(text.lower())), None)


def _asked_for(before: Memory, sentence: Sentence) -> Memory:
    """The memory after a sentence that asked for a tool."""
    return replace(before.hearing(sentence.words), pending="", offer="", missed=0, asking=None)


def _parse(sentence: Sentence) -> Parse | None:
    """What the dialogue alone would understand."""
    return grammar().read(sentence.words.split()).parse if sentence.trust is Trust.WHOLE else None
