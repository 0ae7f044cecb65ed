"""What a call needs of others: somebody who hears speech, an engine session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from duologue.agent.media.activity import VoiceEvent
from duologue.engine import Brief, EngineEvent, Item, Pcm, Unit


class Ear(Protocol):
    """What tells a call when speech begins and ends: ``VoiceActivity``, or a test's script."""

    def push(self, pcm: Pcm) -> list[VoiceEvent]:
        """Take the next samples (16 kHz); returns what they showed."""


class Session(Protocol):
    """What a call needs of an ``EngineSession``; a test's script is one too."""

    def append(self, unit: Unit) -> None:
        """Give the next unit."""

    def reopen(self, brief: Brief) -> None:
        """Begin again with another brief; ``ValueError`` once anything was given."""

    def inject(self, item: Item) -> None:
        """Give an item between two units."""

    def respond(self, instructions: str = "") -> None:
        """Turn mode: ask for a reply."""

    def interrupt(self, turn: int, heard_samples: int) -> str:
        """Cut a reply; returns the text that was heard."""

    def outputs(self) -> AsyncIterator[EngineEvent]:
        """Yield what happens."""

    async def close(self) -> None:
        """Give everything back."""
