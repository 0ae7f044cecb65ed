"""One call's dialogue: answers with a memory that knows only what was heard, and can be rebuilt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random

from duologue.engine.messages import AgentSaid, CallerSaid, HistoryItem, ToolCalled
from duologue.engine.models.embedded.dialogue import reminders
from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Reminder, Said
from duologue.engine.models.embedded.dialogue.policy import (
    Answer,
    Sentence,
    is_backchannel,
    joined,
    respond,
    typed,
)

_TURNS_KEPT = 16
"""Replies that can still be taken back; more are never under way at once."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a reply answered, and the memory before it did."""

    sentence: Sentence | None
    before: Memory


@dataclass(frozen=True, slots=True)
class Continuation:
    """A reply to go on with: turn, whole text, and how much of it has been written."""

    turn: int
    answer: Answer
    written: int


class Dialogue:
    """``seed`` makes its choices: the same seed and the same words give the same replies."""

    def __init__(self, seed: str, greeting: str) -> None:
        self.memory = Memory()
        self._seed = seed
        self._greeting = greeting
        self._asked: dict[int, _Asked] = {}

    def greet(self, turn: int) -> Answer | None:
        """What is said at the start of a call."""
        return self._say(turn, None, self.memory, self._answer(self._greeting, "greeting"))

    def answer(self, sentence: Sentence, turn: int, now: datetime, at: float) -> Answer | None:
        """The reply of ``turn`` to ``sentence``, ``at`` seconds into the call."""
        before = self.memory
        context = Context(sentence.words, now, at, Random(f"{self._seed}/{turn}"))
        answer, self.memory = respond(before, sentence, context)
        return self._say(turn, sentence, before, answer)

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

    def take_back(self, turn: int) -> Sentence | None:
        """Undo reply ``turn``, of which nothing was heard; returns what it answered.

        Replies after it are undone too: they rest on it.
        """
        asked = self._asked.pop(turn, None)
        if asked is None:
            return None
        self.memory = asked.before
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
                sentence = typed(item.text)
                if is_backchannel(sentence.words) and not self.memory.offer:
                    murmur = sentence
                else:
                    waiting = joined(waiting, sentence)
                continue
            if isinstance(item, ToolCalled):
                continue
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
        answer, _ = respond(memory, sentence, context)
        return answer is not None and answer.text.startswith(item.text)

    def _again(self, unheard: int | None, item: AgentSaid, waiting: Sentence | None, now: datetime,
               at: float) -> Sentence | None:
        """What ``item`` answers: what is ``waiting``, or with it what reply ``unheard`` did, taken back then."""
        asked = self._asked.get(unheard) if unheard is not None and item.text else None
        if asked is None or asked.sentence is None or (
                waiting is not None and self._answers(self.memory, item, waiting, now, at)):
            return waiting
        again = asked.sentence if waiting is None else joined(asked.sentence, waiting)
        if unheard is None or not self._answers(asked.before, item, again, now, at):
            return waiting
        self.take_back(unheard)
        return again

    def _relive(self, item: AgentSaid, waiting: Sentence | None, now: datetime, at: float) -> Said:
        """Make reply ``item`` once more; where it comes out different, what was said is all there is of it."""
        before = self.memory
        answer: Answer | None
        announced = next((reminder for reminder in before.reminders
                          if item.text and reminders.announce(reminder).startswith(item.text)), None)
        if waiting is not None:
            answer = self.answer(waiting, item.turn, now, at)
        elif announced is not None:
            answer = self.remind(announced, item.turn)
        else:
            answer = self.greet(item.turn)
        whole = answer.text if answer is not None and answer.text.startswith(item.text) else item.text
        intent = self.memory.said[-1].intent if answer is not None else "greeting"
        said = Said(item.turn, whole, item.text if not item.open else whole, intent)
        self.memory = self.memory.noting(said)
        self._asked[item.turn] = _Asked(waiting, before)
        return said

    def _answer(self, text: str, intent: str) -> Answer | None:
        return Answer(text, intent, self.memory.rate) if text else None

    def _say(self, turn: int, sentence: Sentence | None, before: Memory, answer: Answer | None) -> Answer | None:
        if answer is None:
            return None
        # A resumed count or story can be cut and resumed again.
        intent = answer.intent
        if intent in ("go_on", "again"):
            intent = _source(before, answer.text) or intent
        self.memory = self.memory.noting(Said(turn, answer.text, answer.text, intent))
        self._asked[turn] = _Asked(sentence, before)
        while len(self._asked) > _TURNS_KEPT:
            self._asked.pop(next(iter(self._asked)))
        return answer


def _source(memory: Memory, text: str) -> str | None:
    """What the reply was about that ``text`` says the end of."""
    return next((said.intent for said in reversed(memory.said)
                 if said.text.lower().endswith(text.lower())), None)
