"""One dialogue as it goes on: its moments so far, and the memory from which skills reply."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from random import Random

from duologue.engine.models.embedded.dialogue import memory as remembered
from duologue.engine.models.embedded.dialogue import reminders
from duologue.engine.models.embedded.dialogue.memory import Context, Memory
from duologue.engine.models.embedded.dialogue.policy import HANDLERS
from duologue.engine.models.embedded.options import Options
from duologue.engine.models.embedded.thinking.format import Answer, Call, Heard
from training.thinker.moments import KEEP, LISTEN, Moment, path, say

_GREETING: str = Options.model_fields["greeting"].default
_BETWEEN_S = 8.0
"""About as long as an utterance and its reply take."""


class Story:
    """A dialogue at ``now``."""

    def __init__(self, random: Random, now: datetime) -> None:
        self.random = random
        self.moments: list[Moment] = []
        self.memory = Memory()
        self.called: Call | None = None
        """The skill's call answered last, if the last answer was one."""
        self.cut = False
        """Whether the last reply was cut."""
        self._now = now
        self._at = 0.0
        self._last: int | None = None
        self._counts = Counter[str]()

    @property
    def speaking(self) -> bool:
        """Whether the last thing that happened is a reply, or that it went on."""
        return self._last is not None and self.moments[self._last].wanted.speaks

    def times(self, what: str) -> int:
        """How often this was replied to."""
        return self._counts[what]

    def greet(self) -> None:
        """The agent speaks first."""
        self._unasked(_GREETING, "greeting")

    def reminded(self) -> None:
        """The first reminder is announced."""
        first, *others = self.memory.reminders
        self.memory = replace(self.memory, reminders=tuple(others))
        self._unasked(reminders.announce(first), "reminder")

    def aside(self, heard: Heard, wanted: Answer, kind: str) -> None:
        """What is wanted now, while the utterance goes on."""
        self.moments.append(Moment(self._last, heard, wanted, kind, wanted.text))

    def stand(self, heard: Heard, wanted: Answer, kind: str) -> None:
        """What is wanted of an utterance at its end, and what comes of it."""
        told = wanted.text
        if wanted not in (KEEP, LISTEN):
            told = self._reply(" ".join(heard.words), wanted)
            self._counts[kind.partition(":")[2] or kind] += 1
            self.called = wanted.call
            self.cut = False
        self._put(Moment(self._last, heard, wanted, kind, told))

    def interrupted(self) -> None:
        """The last reply ends before its end, after a word at random."""
        assert self._last is not None
        before = path(self.moments, self._last)
        place = next(i for i in reversed(before) if self.moments[i].wanted not in (KEEP, LISTEN))
        reply, since = self.moments[place], [self.moments[i] for i in before if i > place]
        words = reply.told.split()
        heard = " ".join(words[:self.random.randint(1, max(len(words) - 1, 1))])
        said = self.memory.said[-1]
        self.memory = self.memory.noting(replace(said, heard=heard))
        self.cut = True
        self._last = reply.after
        self._put(replace(reply, told=heard, cut=True, learnt=False))
        for moment in since:
            self._put(replace(moment, after=self._last, learnt=False))

    def _unasked(self, text: str, intent: str) -> None:
        self._note(text, intent)
        self.called = None
        self._put(Moment(self._last, None, say(text), intent, text, learnt=False))

    def _put(self, moment: Moment) -> None:
        self.moments.append(moment)
        self._last = len(self.moments) - 1

    def _reply(self, words: str, wanted: Answer) -> str:
        self._at += self.random.uniform(0.5, 1.5) * _BETWEEN_S
        offer = self.memory.offer
        self.memory = replace(self.memory.hearing(words), offer="")
        if wanted.call is None:
            self._note(wanted.text, "talk")
            return wanted.text
        name = offer if wanted.call.name == "yes" and offer else wanted.call.name
        context = Context(words, self._now, self._at, self.random)
        text, self.memory = HANDLERS[name](wanted.call.slots, self.memory, context)
        self._note(text, name)
        return text

    def _note(self, text: str, intent: str) -> None:
        turn = self.memory.said[-1].turn + 1 if self.memory.said else 0
        self.memory = self.memory.noting(remembered.Said(turn, text, text, intent))
