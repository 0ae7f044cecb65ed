"""What one call's dialogue remembers: immutable, so that an answer nobody heard can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from random import Random

KEPT = 12
"""Replies, and sentences of the caller, that are remembered."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply: its whole ``text``, what the caller ``heard`` of it, and what it was about."""

    turn: int
    text: str
    heard: str
    intent: str

    @property
    def rest(self) -> str:
        """What the caller has not heard."""
        return self.text[len(self.heard):] if self.text.startswith(self.heard) else ""


@dataclass(frozen=True, slots=True)
class Reminder:
    """Something to say at ``due``, in seconds of the caller's audio; ``task`` is empty for a mere timer."""

    task: str
    span: str
    due: float


@dataclass(frozen=True, slots=True)
class Asking:
    """A tool's call that waits for ``parameter``; ``arguments`` is what is known, a JSON object as text."""

    tool: str
    arguments: str
    parameter: str


@dataclass(frozen=True, slots=True)
class Memory:
    """The state of a dialogue."""

    said: tuple[Said, ...] = ()
    """Newest last; only what was heard of each counts."""
    caller: tuple[str, ...] = ()
    """What the caller said, newest last."""
    name: str = ""
    reminders: tuple[Reminder, ...] = ()
    result: Fraction | None = None
    """Of the last sum, so that "plus two" can go on with it."""
    stories: int = 0
    jokes: int = 0
    rate: float = 1.0
    """How fast replies are said; 1 is the voice's own pace."""
    pending: str = ""
    """Words of a sentence that the caller has not finished."""
    offer: str = ""
    """The intent that a "yes" now means."""
    asking: Asking | None = None
    """What the caller was asked for, so that a tool can be called."""
    missed: int = 0
    """Sentences in a row that were not understood."""

    def noting(self, said: Said) -> Memory:
        """With one more reply, or a new version of one."""
        others = tuple(item for item in self.said if item.turn != said.turn)
        return replace(self, said=(*others, said)[-KEPT:])

    def hearing(self, text: str) -> Memory:
        """With one more sentence of the caller."""
        return replace(self, caller=(*self.caller, text)[-KEPT:])


@dataclass(frozen=True, slots=True)
class Context:
    """What an answer depends on besides the memory."""

    words: str
    now: datetime
    """Wall clock, for the time and the date."""
    at: float
    """Seconds of the caller's audio so far, for reminders."""
    random: Random


Slots = Mapping[str, str]
Outcome = tuple[str, Memory]
"""The reply's text and the memory after it; an empty text is no reply."""
Handler = Callable[[Slots, Memory, Context], Outcome]


def sentence(text: str) -> str:
    """``text`` with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "?", "!")) else text + "."
