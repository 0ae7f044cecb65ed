"""A caller's session with the engine, as the agent sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from duologue.engine.messages import CallerText, EngineEvent, Unit

RefusalReason = Literal["capacity", "queue_full", "draining", "stage_down"]


class Refused(Exception):  # noqa: N818 - the name of the answer, not of a fault
    """The engine does not take this session now; ``message`` says why in words for the caller.

    With the reason ``capacity`` the caller waits: ``position`` counts from 1, ``eta_s`` is in seconds or
    None when unknown, and ``ticket`` given to the next ``open`` keeps the place.
    """

    def __init__(self, reason: RefusalReason, message: str, *, position: int | None = None,
                 eta_s: float | None = None, ticket: str | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.position = position
        self.eta_s = eta_s
        self.ticket = ticket


class Overrun(Exception):  # noqa: N818 - the name of the condition
    """The session has ``max_pending_units`` units waiting for a decision; the unit was not taken."""


class EngineSession:
    """One session: units in, one ordered stream of events out."""

    id: str

    def append(self, unit: Unit) -> None:
        """Give the next unit; never blocks. Raises ``Overrun``, or ``ValueError`` for a unit out of order."""
        raise NotImplementedError

    def inject(self, item: CallerText) -> None:
        """Give the thinker text between two units."""
        raise NotImplementedError

    def interrupt(self, turn: int, heard_samples: int) -> str:
        """Cut reply ``turn`` at ``heard_samples`` of its audio; returns the text that was heard."""
        raise NotImplementedError

    def outputs(self) -> AsyncIterator[EngineEvent]:
        """Yield everything that happens in the session, in order, until it is closed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Give everything back, always; idempotent."""
        raise NotImplementedError
