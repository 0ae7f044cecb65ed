"""A caller's session with the engine, as the agent sees it: the thin shell around ``SessionState``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Literal

from duologue.engine.brief import Brief
from duologue.engine.messages import (
    Decision,
    EngineEvent,
    HistoryItem,
    Item,
    StageOutput,
    ToolCall,
    TurnEnd,
    Unit,
)
from duologue.engine.state import Overrun, SessionState
from duologue.engine.wire import FromStage, Taken, ToStage
from duologue.metrics import DECISIONS, DROPS, TOOL_CALLS, TURNS, UNIT_SECONDS, UNITS

__all__ = ["EngineSession", "Overrun", "RefusalReason", "Refused"]

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


class EngineSession:
    """One session: units in, one ordered stream of events out.

    It may end by itself, when a stage failed for it twice or was given up: every reply has had its terminal
    event then, ``outputs`` ends, and what is given to it is dropped.
    """

    def __init__(self, state: SessionState, *, send: Callable[[ToStage], None],
                 release: Callable[[EngineSession], None], observe: Callable[[float], None]) -> None:
        self.id = state.session
        self.brief = state.brief
        """What it was opened with."""
        self._state = state
        self._send = send
        self._release = release
        self._observe = observe
        self._given_at: dict[int, float] = {}
        """When each unit was given that waits for its decision."""
        self._news = asyncio.Event()
        self._settle()

    def reopen(self, brief: Brief) -> None:
        """Begin again with another brief, as clients ask once they are connected.

        Raises ``ValueError`` once a unit or an item was given: from there on the voice and the way of replying stay.
        """
        self._state.reopen(brief)
        self._settle()

    def append(self, unit: Unit) -> None:
        """Give the next unit; never blocks.

        Raises ``Overrun`` when ``max_pending_units`` wait for a decision, ``ValueError`` for a unit that is
        out of order or not ``unit_samples`` of int16; the unit was not taken then.
        """
        self._state.append(unit)
        if not self._state.over:
            UNITS.inc()
            self._given_at[unit.index] = asyncio.get_running_loop().time()
        self._settle()

    def inject(self, item: Item) -> None:
        """Give the thinker an item between two units.

        Raises ``Overrun`` when too many wait for it, ``ValueError`` for the result of a call that is not open and for
        tools that cannot be called; the item was not taken then.
        """
        self._state.inject(item)
        self._settle()

    def respond(self, instructions: str = "") -> None:
        """Turn mode: ask for a reply to what was heard so far; ``instructions`` are for this reply alone.

        The answer is a reply, or the call of a tool. One request waits at a time: another takes its place, and an
        interruption of an open reply, or of a number that no reply has, takes it back. Raises ``Overrun`` like
        ``inject``, and ``ValueError`` in a session that replies by itself.
        """
        self._state.respond(instructions)
        self._settle()

    def interrupt(self, turn: int, heard_samples: int) -> str:
        """Cut reply ``turn`` at ``heard_samples`` of its audio; returns the text that was heard.

        The epoch rises at once: nothing older comes out of ``outputs`` any more, except that each reply of
        which something came out gets its one terminal event. A reply that is over already is cut in the
        journal. One that was cut before stays as it is.
        """
        heard = self._state.interrupt(turn, heard_samples)
        self._settle()
        return heard

    async def outputs(self) -> AsyncIterator[EngineEvent]:
        """Yield everything that happens in the session, in order, until it is over. For one reader."""
        while True:
            self._news.clear()
            while (event := self._state.pop()) is not None:
                _count(event)
                yield event
            if self._state.over:
                return
            await self._news.wait()

    def history(self) -> tuple[HistoryItem, ...]:
        """What was said by both and asked of tools, in order, each reply as far as it was heard or has been written."""
        return self._state.history()

    async def close(self) -> None:
        """Give everything back, always; idempotent. Never waits, so there is nothing to cancel in it."""
        self._state.close()
        self._settle()

    # --- for the engine -------------------------------------------------------------------------------------

    def receive(self, message: FromStage | Taken) -> None:
        """Take what a stage says."""
        if isinstance(message, Taken):
            self._state.taken(message.stage, message.serial, message.count)
        else:
            self._measure(message.message)
            self._state.receive(message.stage, message.serial, message.message)
        self._settle()

    def lost(self, stages: tuple[str, ...], detail: str) -> None:
        """Note that a process with these stages died."""
        # What waited for a dead process says nothing of how busy the engine is.
        self._given_at.clear()
        self._state.lost(stages, detail)
        self._settle()

    def leave(self, stages: tuple[str, ...]) -> None:
        """Give back what these stages hold of the session, which is about to be rebuilt elsewhere."""
        self._state.leave(stages)
        self._settle()

    def restored(self, stages: tuple[str, ...]) -> None:
        """Note that a process with these stages runs again."""
        self._state.restored(stages)
        self._settle()

    def given_up(self, stages: tuple[str, ...], detail: str) -> None:
        """Note that a process with these stages is not started again: the session ends."""
        self._state.given_up(stages, detail)
        self._settle()

    def _measure(self, message: StageOutput) -> None:
        if not isinstance(message, Decision):
            return
        given = self._given_at.pop(message.unit, None)
        if given is not None:
            self._observe(max(message.work_s, asyncio.get_running_loop().time() - given))

    def _settle(self) -> None:
        """Carry out what the state wants done."""
        for message in self._state.take_sends():
            self._send(message)
        for (what, reason), count in self._state.drops.items():
            DROPS.labels(what=what, reason=reason).inc(count)
        self._state.drops.clear()
        self._news.set()
        if self._state.over:
            self._given_at.clear()
            self._release(self)


def _count(event: EngineEvent) -> None:
    if isinstance(event, TurnEnd):
        TURNS.labels(status=event.status.value).inc()
    elif isinstance(event, Decision):
        DECISIONS.labels(choice=event.choice.value).inc()
        UNIT_SECONDS.observe(event.work_s)
    elif isinstance(event, ToolCall):
        TOOL_CALLS.inc()
