"""Events on their way from a session to the agent: what an interruption can still take back."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from duologue.engine.messages import (
    Choice,
    Decision,
    EngineEvent,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
)
from duologue.engine.turns import Turns

MAX_EVENTS = 8192
"""Events an agent may leave unread (some ten minutes of a reply); then the session is ended."""


class Outbox:
    """An ordered queue of events."""

    def __init__(self) -> None:
        self._events: deque[EngineEvent] = deque()

    @property
    def full(self) -> bool:
        """Whether the agent has stopped reading."""
        return len(self._events) >= MAX_EVENTS

    def put(self, event: EngineEvent) -> None:
        """Add an event."""
        self._events.append(event)

    def pop(self, turns: Turns) -> EngineEvent | None:
        """Give the next event, and mark its reply as surfaced."""
        if not self._events:
            return None
        event = self._events.popleft()
        if isinstance(event, ReplyText | ReplyAudio) and (turn := turns.get(event.fence.turn)) is not None:
            turn.surfaced = True
            if isinstance(event, ReplyAudio):
                turn.surfaced_samples = event.first_sample + len(event.pcm)
        return event

    def raise_epoch(self, epoch: int, turns: Turns, cut: int, heard: str) -> int:
        """Take back what is of an older epoch; returns how many events were dropped.

        Text and audio go, and the end of a reply nobody has seen anything of. The end of reply ``cut`` tells
        what was ``heard``. A decision stays, since its unit was decided, but says listen: its reply is void.
        """
        kept: list[EngineEvent] = []
        for event in self._events:
            match event:
                case ReplyText() | ReplyAudio():
                    continue
                case Decision():
                    kept.append(void(event, epoch))
                case TurnEnd(turn=turn) if turn == cut and event.status is TurnStatus.DONE:
                    kept.append(replace(event, epoch=epoch, status=TurnStatus.INTERRUPTED, text=heard))
                case TurnEnd(turn=turn):
                    known = turns.get(turn)
                    if turn == cut or known is None or known.surfaced:
                        kept.append(replace(event, epoch=epoch))
                case _:
                    kept.append(event)
        dropped = len(self._events) - len(kept)
        self._events = deque(kept)
        return dropped


def void(decision: Decision, epoch: int) -> Decision:
    """What remains of a decision that an interruption overtook: the unit was heard."""
    return replace(decision, epoch=epoch, choice=Choice.LISTEN, yields=False)
