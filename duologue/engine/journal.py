"""The record of a session from its first moment: what the model was given and said, in order.

It only grows: an interruption is a record too, that of the cut. Every rebuild of a stage is the same act, an
``Open`` with the journal's history and a replay of the units it keeps. Audio is kept only until it has become
words; a model that thinks in tokens is given them back, and the audio before each, as far as it is kept.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from duologue.engine.messages import AgentSaid, CallerSaid, Decided, HistoryItem, Open, ToolCalled, Unit

MAX_RECORDS = 20_000
"""Records kept (about two hours of talk at three pieces of text a second); the oldest are dropped first."""
MAX_OUTPUTS = 20_000
"""Answers in tokens kept (five hours of 1 s units); the oldest are dropped first."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The caller said, or typed, ``text``, before unit ``unit``."""

    text: str
    unit: int


@dataclass(frozen=True, slots=True)
class Said:
    """The thinker wrote a piece of reply ``turn``; the reply's text is whole with ``last``."""

    turn: int
    text: str
    last: bool


@dataclass(frozen=True, slots=True)
class Cut:
    """Reply ``turn`` was cut as ``epoch`` began: ``heard`` is all the caller heard of it."""

    turn: int
    heard: str
    epoch: int


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Reply ``turn`` failed; there will be no more of it."""

    turn: int


@dataclass(frozen=True, slots=True)
class Called:
    """The thinker called the tool ``name`` in answer to unit ``unit``."""

    call: str
    name: str
    arguments: str
    unit: int


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool answered ``call``."""

    call: str
    output: str


Record = Heard | Said | Cut | GivenUp | Called | Returned


class Journal:
    """One session's record; ``max_units`` bounds the audio kept of what has not been understood."""

    def __init__(self, max_units: int) -> None:
        self._max_units = max_units
        self._records: deque[Record] = deque()
        self._units: deque[Unit] = deque()
        self._outputs: deque[Decided] = deque()
        self._understood = -1

    def write(self, record: Record) -> int:
        """Add a record; returns how many of the oldest were dropped for it."""
        self._records.append(record)
        if len(self._records) <= MAX_RECORDS:
            return 0
        self._records.popleft()
        return 1

    def keep(self, unit: Unit, decided: int) -> int:
        """Keep a unit that was given; units before ``decided`` have their decision and may be let go.

        Returns how many units were dropped because there are more than ``max_units``.
        """
        self._units.append(unit)
        self._let_go(decided)
        dropped = 0
        while len(self._units) > self._max_units and self._units[0].index < decided:
            self._units.popleft()
            dropped += 1
        return dropped

    def understood(self, last_unit: int, text: str, decided: int) -> int:
        """Record a final utterance, whose speech ended in ``last_unit``: its audio is not needed any more."""
        self._understood = max(self._understood, last_unit)
        self._let_go(decided)
        return self.write(Heard(text, last_unit + 1))

    def answered(self, output: Decided) -> int:
        """Record the tokens a unit was answered with; returns how many of the oldest were dropped for it."""
        self._outputs.append(output)
        if len(self._outputs) <= MAX_OUTPUTS:
            return 0
        self._outputs.popleft()
        return 1

    def _let_go(self, decided: int) -> None:
        if self._outputs:
            # A model that thinks in tokens has the audio itself before it.
            return
        # A unit without its decision stays: replaying it is the only way to get one.
        while self._units and self._units[0].index <= self._understood and self._units[0].index < decided:
            self._units.popleft()

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units to replay after ``history``, consecutive."""
        return tuple(self._units)

    def opening(self, blank: Open) -> Open:
        """Put into ``blank``, whose ``next_unit`` is the next that will come, what a rebuilt session begins with."""
        return replace(blank, next_unit=self._units[0].index if self._units else blank.next_unit,
                       history=self.history(), outputs=tuple(self._outputs))

    def history(self) -> tuple[HistoryItem, ...]:
        """What was said by both, in order, each reply as far as it was heard or has been written.

        A tool's result stands where it was asked for.
        """
        items: list[HistoryItem] = []
        replies: dict[int, int] = {}
        calls: dict[str, int] = {}
        for record in self._records:
            match record:
                case Heard():
                    items.append(CallerSaid(record.text, record.unit))
                case Called():
                    calls[record.call] = len(items)
                    items.append(ToolCalled(record.call, record.name, record.arguments, unit=record.unit))
                case Returned():
                    # The record of the call may have been among the oldest, which go first.
                    if (at := calls.get(record.call)) is not None:
                        called = items[at]
                        assert isinstance(called, ToolCalled)
                        items[at] = replace(called, output=record.output)
                case Said() | Cut() | GivenUp():
                    if record.turn not in replies:
                        replies[record.turn] = len(items)
                        items.append(AgentSaid(record.turn, "", open=True))
                    at = replies[record.turn]
                    said = items[at]
                    assert isinstance(said, AgentSaid)
                    items[at] = _revised(said, record)
        return tuple(items)


def _revised(said: AgentSaid, record: Said | Cut | GivenUp) -> AgentSaid:
    match record:
        case Said():
            return replace(said, text=said.text + record.text, open=not record.last)
        case Cut():
            return replace(said, text=record.heard, open=False, cut=record.epoch)
        case GivenUp():
            return replace(said, open=False)
