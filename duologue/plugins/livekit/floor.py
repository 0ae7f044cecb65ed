"""What LiveKit Agents is told of the caller's speech: what ended a reply or met none, not what a reply outlived.

The framework takes every start of speech for an interruption. The server pauses a reply at once and rules later, by
what was said, whether the reply is cut or goes on; so speech that meets a reply is kept back until it has ruled.
"""

from __future__ import annotations

from typing import Literal

Signal = Literal["started", "stopped"]

_LISTENING = "listening"
_UNDECIDED = ("paused", "ducked")
"""States of ``duologue.state`` (docs/protocol.md): no reply, and a reply over which something was heard."""


class Floor:
    """The server's states and the caller's speech in, the signals that are due out. Pure."""

    def __init__(self) -> None:
        self._state = _LISTENING
        self._kept: list[Signal] = []
        self._speaking = False
        """What the framework believes of the caller."""

    @property
    def paused(self) -> bool:
        """The server has paused its reply: nothing more of it should be heard."""
        return self._state == "paused"

    def moved(self, state: str) -> list[Signal]:
        """The server says ``state``."""
        self._state = state
        if state == _LISTENING:
            return self._tell(*self._take())
        self._forget()
        return []

    def heard(self, signal: Signal) -> list[Signal]:
        """The server's voice activity says ``signal``."""
        if self._state == _LISTENING or (signal == "stopped" and self._speaking):
            return self._tell(signal)
        self._kept.append(signal)
        self._forget()
        return []

    def cut(self) -> list[Signal]:
        """The server has cut its reply, perhaps for words that were over before it understood them."""
        kept = self._take()
        return self._tell(*kept) if kept else self._tell("started", "stopped")

    def replying(self) -> list[Signal]:
        """A reply begins: to the framework the caller's turn is over, or it would hold the reply back."""
        return self._tell("stopped")

    def lost(self) -> list[Signal]:
        """The server is gone, and with it whatever it heard."""
        self._state, self._kept = _LISTENING, []
        return self._tell("stopped")

    def _take(self) -> list[Signal]:
        kept, self._kept = self._kept, []
        return kept

    def _forget(self) -> None:
        """Speech that is over while the reply goes on was no turn."""
        if self._state not in _UNDECIDED and self._kept[-1:] == ["stopped"]:
            self._kept = []

    def _tell(self, *signals: Signal) -> list[Signal]:
        told: list[Signal] = []
        for signal in signals:
            if (signal == "started") != self._speaking:
                self._speaking = not self._speaking
                told.append(signal)
        return told
