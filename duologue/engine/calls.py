"""The tools' work that a session's thinker has asked for: each piece once, and answered once."""

from __future__ import annotations

CALLS_KEPT = 1024
"""Calls that are remembered, so that none is asked for or answered twice; the oldest are forgotten first."""


class Calls:
    """One session's calls, by the id that the thinker gave each."""

    def __init__(self) -> None:
        self._open: dict[str, bool] = {}
        """Whether each call still waits for its result."""

    def ask(self, call: str) -> bool:
        """Note that the thinker asks; False if it has asked before."""
        if call in self._open:
            return False
        self._open[call] = True
        if len(self._open) > CALLS_KEPT:
            del self._open[next(iter(self._open))]
        return True

    def answer(self, call: str) -> None:
        """Note a result. Raises ``ValueError`` when nothing, or nothing more, is waited for under this id."""
        waits = self._open.get(call)
        if waits is None:
            raise ValueError(f"there was no tool call {call!r}; answer with the id that the call came with")
        if not waits:
            raise ValueError(f"the tool call {call!r} has had its result; a call is answered once")
        self._open[call] = False
