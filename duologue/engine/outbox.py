"""Events on their way from a session to the agent: what an interruption can still take back."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
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

    @property
    def waiting(self) -> tuple[EngineEvent, ...]:
        """The events that have not been given yet, in order."""
        return tuple(self._events)

    def split(self, at: int, samples: int) -> None:
        """Make two of the chunk of audio at ``at``, the first of ``samples``; each has the words that end in it."""
        whole = self._events[at]
        if not isinstance(whole, ReplyAudio):
            raise ValueError(f"a {type(whole).__name__} cannot be split")
        if not 0 < samples < len(whole.pcm):
            return
        cut = whole.first_sample + samples
        self._events[at] = replace(whole, pcm=whole.pcm[samples:], first_sample=cut,
                                   spans=tuple(span for span in whole.spans if span.end_sample > cut))
        self._events.insert(at, replace(whole, pcm=whole.pcm[:samples], last=False,
                                        spans=tuple(span for span in whole.spans if span.end_sample <= cut)))

    def pop(self, turns: Turns, at: int = 0) -> EngineEvent | None:
        """Give the next event, or the ``at``-th after it, and note in its reply what the agent knows of it now."""
        if at >= len(self._events):
            return None
        event = self._events[at]
        del self._events[at]
        if isinstance(event, ReplyText | ReplyAudio) and (turn := turns.get(event.fence.turn)) is not None:
            turn.surfaced = True
            if isinstance(event, ReplyAudio):
                turn.surfaced_samples = event.first_sample + len(event.pcm)
        elif isinstance(event, TurnEnd) and (turn := turns.get(event.turn)) is not None:
            turn.told = True
        return event

    def raise_epoch(self, epoch: int, cut: dict[int, str], surfaced: Container[int]) -> int:
        """Take back what is of an older epoch; returns how many events were dropped.

        Text and audio go. The end of a reply that was ``cut`` tells what was heard of it, and goes too if
        nothing of the reply ``surfaced``. A decision stays, since its unit was decided, but its reply is void.
        """
        kept: list[EngineEvent] = []
        for event in self._events:
            match event:
                case ReplyText() | ReplyAudio():
                    continue
                case Decision():
                    kept.append(void(event, epoch))
                case TurnEnd(turn=turn) if turn in cut:
                    if turn in surfaced:
                        done = event.status is TurnStatus.DONE
                        kept.append(replace(event, epoch=epoch, text=cut[turn],
                                            status=TurnStatus.INTERRUPTED if done else event.status))
                case TurnEnd():
                    kept.append(replace(event, epoch=epoch))
                case _:
                    kept.append(event)
        dropped = len(self._events) - len(kept)
        self._events = deque(kept)
        return dropped


def void(decision: Decision, epoch: int) -> Decision:
    """What remains of a decision that an interruption overtook: the unit was heard."""
    return replace(decision, epoch=epoch, choice=Choice.LISTEN, yields=False)
