"""The tools of a dialogue and the work they were sent for: one call at a time, each result told once."""

from __future__ import annotations

from collections.abc import Sequence

from duologue.engine.messages import Tool
from duologue.engine.models.embedded.dialogue.skills import skills


class Errands:
    """What is under way, and what came of it."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.skills = skills(tools)
        self.calls = 0
        """Calls made so far."""
        self.waiting: str | None = None
        """The call whose result has not come."""
        self._results: dict[str, str] = {}
        """What tools have answered and has not been told, by the call's id."""

    def use(self, tools: Sequence[Tool]) -> None:
        """Take other tools."""
        self.skills = skills(tools)

    def called(self, call: str) -> None:
        """Note that a tool was called, by this id."""
        self.calls += 1
        self.waiting = call

    def returned(self, call: str, output: str) -> None:
        """Take a tool's result."""
        if call == self.waiting:
            self.waiting = None
        self._results[call] = output

    @property
    def result(self) -> tuple[str, str] | None:
        """The first result that has not been told, and its call."""
        return next(iter(self._results.items()), None)

    def told(self, call: str) -> None:
        """Note that the result of ``call`` is being told."""
        del self._results[call]

    def untold(self, results: Sequence[tuple[str, str]]) -> None:
        """Note that what told these results was taken back: they come first again."""
        self._results = dict(results) | self._results
