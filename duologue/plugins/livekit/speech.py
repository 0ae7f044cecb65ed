"""When LiveKit Agents is told of the caller's speech.

The framework takes each start of speech for an interruption, and the server sends it as one: over a reply only when
that is cut. What the framework would do then, cancel the response, the server is about to have done.
"""

from __future__ import annotations

from typing import Literal

Signal = Literal["started", "stopped"]


class Speech:
    """The caller's speech in, the signals that are due out. Pure."""

    def __init__(self) -> None:
        self._kept: list[Signal] = []
        self._told: Signal = "stopped"
        """What the framework was told last."""

    def heard(self, signal: Signal, *, replying: bool) -> list[Signal]:
        """The server says ``signal``; ``replying``: there is a response that has not ended."""
        if self._kept or (replying and signal == "started"):
            self._kept.append(signal)
            return []
        return self._tell(signal)

    def reply_begins(self) -> list[Signal]:
        """To the framework the caller's turn is over, or it would hold the reply back until it is."""
        return self._tell("stopped")

    def reply_is_over(self) -> list[Signal]:
        """What was said over it is told now."""
        kept, self._kept = self._kept, []
        return self._tell(*kept)

    def lost(self) -> list[Signal]:
        """The server is gone, and with it whatever it heard."""
        self._kept = []
        return self._tell("stopped")

    def _tell(self, *signals: Signal) -> list[Signal]:
        told: list[Signal] = []
        for signal in signals:
            if signal != self._told:
                self._told = signal
                told.append(signal)
        return told
