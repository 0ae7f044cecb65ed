"""Who has the floor: the turn-taking of one call, as a machine without I/O.

The theory. The *thinker* decides, unit by unit, whether to listen or to speak; this machine never does. What it
decides is what happens to a reply that is already on its way to the caller's ear when the caller makes a sound:

1. An *onset* over the reply pauses it at once. That is reversible: not a sample is lost.
2. Then a verdict. The reply is *interrupted* when the thinker yields the floor, when the speech goes on for longer
   than any "mm-hm" does, or when the client asks for it. It is *resumed* when the caller has fallen silent and the
   thinker has ruled on what was said without yielding.

While little of the agent's voice has been played yet, the caller's echo canceller has not adapted, so an onset may be
the agent itself: then it only ducks the reply, and only the thinker, who knows its own words, can interrupt it.

Rules this file keeps. Everything that affects who has the floor lives here. Time is the number of the caller's samples
(16 kHz), never a clock. All transitions stand in one table, TRANSITIONS; an event that has no row in the present state,
or none whose guard holds, changes nothing. The diagram in docs/architecture.md is made from the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from duologue.agent.config import BargeInConfig
from duologue.agent.media.activity import Hint, Offset, Onset
from duologue.agent.turn_events import (
    Announce,
    CancelAsked,
    Cause,
    Duck,
    Effect,
    End,
    Event,
    HungUp,
    Interrupt,
    Pause,
    PlayFinished,
    PlayStarted,
    RanLong,
    ReplyClosed,
    ReplyOpened,
    Resume,
    Ruled,
    State,
    Tick,
    Unduck,
)
from duologue.engine import INPUT_RATE

# --- what the guards look at --------------------------------------------------------------------------------


@dataclass(slots=True)
class Floor:
    """What has been observed so far; updated before the table is consulted."""

    config: BargeInConfig
    now: int = 0
    turns: list[int] = field(default_factory=list)
    """Replies begun and not yet played to their end, oldest first."""
    started: bool = False
    """Whether any of ``turns[0]`` has been played."""
    hint_at: int = 0
    onset_at: int = 0
    offset_at: int = 0
    in_speech: bool = False
    ruled_through: int = 0
    heard: int = 0
    """Samples (16 kHz) of the agent's voice played in this call."""

    def observe(self, event: Event) -> None:
        """Take note of ``event``."""
        match event:
            case Tick(at, heard):
                self.now = max(self.now, at)
                self.heard += heard
            case Hint(at):
                self.hint_at = at
            case Onset(at):
                if not self.in_speech:
                    self.onset_at = at
                self.in_speech = True
            case Offset(at):
                self.offset_at = at
                self.in_speech = False
            case Ruled(through):
                self.ruled_through = max(self.ruled_through, through)
            case ReplyOpened(turn):
                if turn not in self.turns:
                    self.turns.append(turn)
            case PlayStarted(turn):
                self.started = turn in self.turns
            case PlayFinished(turn) | ReplyClosed(turn, silent=True):
                if turn in self.turns:
                    self.started = self.started and turn != self.turns[0]
                    self.turns.remove(turn)
            case _:
                pass

    def since(self, sample: int) -> int:
        """Milliseconds from ``sample`` to now."""
        return (self.now - sample) * 1000 // INPUT_RATE

    @property
    def guarded(self) -> bool:
        """Whether an onset may still be the agent's own echo."""
        return self.heard * 1000 < self.config.echo_guard_ms * INPUT_RATE


_CAUSES: dict[type, Cause] = {CancelAsked: Cause.CLIENT, RanLong: Cause.LENGTH}

Guard = Callable[[Floor, Event], bool]
Action = Callable[[Floor, Event], tuple[Effect, ...]]


def always(_floor: Floor, _event: Event) -> bool:
    """"""
    return True


def known_turn(floor: Floor, event: Event) -> bool:
    """of a reply not cut"""
    return isinstance(event, PlayStarted) and event.turn in floor.turns


def yields(_floor: Floor, event: Event) -> bool:
    """the thinker yields"""
    return isinstance(event, Ruled) and event.yields


def may_be_echo(floor: Floor, _event: Event) -> bool:
    """may be echo"""
    return floor.guarded


def nothing_left(floor: Floor, _event: Event) -> bool:
    """nothing left to say"""
    return not floor.turns


def more_to_come(floor: Floor, _event: Event) -> bool:
    """another reply follows"""
    return bool(floor.turns) and not floor.started


def hint_was_nothing(floor: Floor, _event: Event) -> bool:
    """no speech came of it"""
    if floor.in_speech:
        return False
    return floor.since(max(floor.hint_at, floor.offset_at)) >= floor.config.duck_ms


def too_long_for_a_backchannel(floor: Floor, _event: Event) -> bool:
    """speech goes on"""
    return floor.in_speech and floor.since(floor.onset_at) >= floor.config.confirm_ms


def false_alarm(floor: Floor) -> bool:
    """Whether the caller is silent again and the thinker lets the reply go on."""
    silent_ms = floor.since(floor.offset_at)
    if floor.in_speech or silent_ms < floor.config.resume_ms:
        return False
    return floor.ruled_through >= floor.offset_at or silent_ms >= floor.config.verdict_wait_ms


def false_alarm_while_playing(floor: Floor, _event: Event) -> bool:
    """silence again, no yield"""
    return false_alarm(floor) and floor.started


def false_alarm_before_playing(floor: Floor, _event: Event) -> bool:
    """silence again, nothing played yet"""
    return false_alarm(floor) and not floor.started


def nothing(_floor: Floor, _event: Event) -> tuple[Effect, ...]:
    """"""
    return ()


def duck(_floor: Floor, _event: Event) -> tuple[Effect, ...]:
    """duck"""
    return (Duck(),)


def unduck(_floor: Floor, _event: Event) -> tuple[Effect, ...]:
    """unduck"""
    return (Unduck(),)


def pause(floor: Floor, _event: Event) -> tuple[Effect, ...]:
    """pause"""
    return (Pause(floor.onset_at),)


def resume(_floor: Floor, _event: Event) -> tuple[Effect, ...]:
    """resume"""
    return (Resume(),)


def interrupt(floor: Floor, event: Event) -> tuple[Effect, ...]:
    """interrupt"""
    turn = floor.turns[0]
    floor.turns.clear()
    floor.started = False
    return (Interrupt(turn, _CAUSES.get(type(event), Cause.SPEECH)),)


def end(_floor: Floor, event: Event) -> tuple[Effect, ...]:
    """end the call"""
    return (End(event.reason if isinstance(event, HungUp) else ""),)


@dataclass(frozen=True, slots=True)
class Transition:
    """In ``state``, on ``event``, if ``guard`` holds: go to ``target`` and do ``action``."""

    state: State
    event: type[Event]
    guard: Guard
    target: State
    action: Action


_L, _T, _S, _D, _P, _E = State
_WITH_A_REPLY = (_T, _S, _D, _P)

TRANSITIONS: tuple[Transition, ...] = (
    Transition(_L, ReplyOpened, always, _T, nothing),
    Transition(_T, PlayStarted, known_turn, _S, nothing),
    Transition(_T, Onset, always, _P, pause),
    Transition(_T, ReplyClosed, nothing_left, _L, nothing),
    Transition(_T, PlayFinished, nothing_left, _L, nothing),
    Transition(_S, Hint, always, _D, duck),
    Transition(_S, Onset, may_be_echo, _D, duck),
    Transition(_S, Onset, always, _P, pause),
    Transition(_S, PlayFinished, nothing_left, _L, nothing),
    Transition(_S, PlayFinished, more_to_come, _T, nothing),
    Transition(_D, Onset, may_be_echo, _D, nothing),
    Transition(_D, Onset, always, _P, pause),
    Transition(_D, Tick, hint_was_nothing, _S, unduck),
    Transition(_D, PlayFinished, nothing_left, _L, unduck),
    Transition(_D, PlayFinished, more_to_come, _T, unduck),
    Transition(_P, Tick, too_long_for_a_backchannel, _L, interrupt),
    Transition(_P, Tick, false_alarm_while_playing, _S, resume),
    Transition(_P, Tick, false_alarm_before_playing, _T, resume),
    Transition(_P, ReplyClosed, nothing_left, _L, resume),
    Transition(_P, PlayFinished, nothing_left, _L, resume),
    *(Transition(state, Ruled, yields, _L, interrupt) for state in _WITH_A_REPLY),
    *(Transition(state, CancelAsked, always, _L, interrupt) for state in _WITH_A_REPLY),
    *(Transition(state, RanLong, always, _L, interrupt) for state in _WITH_A_REPLY),
    *(Transition(state, HungUp, always, _E, end) for state in (_L, *_WITH_A_REPLY)),
)

_ROWS: dict[tuple[State, type], tuple[Transition, ...]] = {}
for _row in TRANSITIONS:
    _ROWS[_row.state, _row.event] = (*_ROWS.get((_row.state, _row.event), ()), _row)


class Conversation:
    """The turn-taking of one call: give it events, carry out the effects it returns, in order."""

    def __init__(self, config: BargeInConfig) -> None:
        self.state = State.LISTENING
        self.floor = Floor(config)

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Take ``event``; after ``ENDED`` nothing has any effect."""
        if self.state is State.ENDED:
            return ()
        self.floor.observe(event)
        for row in _ROWS.get((self.state, type(event)), ()):
            if row.guard(self.floor, event):
                effects = row.action(self.floor, event)
                if row.target is not self.state:
                    self.state = row.target
                    effects = (*effects, Announce(row.target))
                return effects
        return ()
