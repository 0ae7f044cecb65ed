"""What the turn-taking of a call is told, and what it wants done: the vocabulary of ``conversation.py``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from duologue.agent.media.activity import Hint, Offset, Onset


class State(Enum):
    """Who has the floor."""

    LISTENING = "listening"
    """The agent is silent and has nothing to say."""
    THINKING = "thinking"
    """The thinker has begun a reply of which nothing has been played."""
    SPEAKING = "speaking"
    """A reply is being played."""
    DUCKED = "ducked"
    """It is being played softly: somebody may be speaking."""
    PAUSED = "paused"
    """It is held: somebody is speaking, and there is no verdict yet."""
    ENDED = "ended"
    """The call is over."""


# --- events in ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ruled:
    """The thinker has decided on a unit that ends at sample ``through``."""

    through: int
    yields: bool = False


@dataclass(frozen=True, slots=True)
class ReplyOpened:
    """The thinker has begun a reply."""

    turn: int


@dataclass(frozen=True, slots=True)
class ReplyClosed:
    """The engine's terminal event of a reply; ``silent`` when no audio of it ever came."""

    turn: int
    silent: bool


@dataclass(frozen=True, slots=True)
class PlayStarted:
    """The first sample of a reply was handed out."""

    turn: int


@dataclass(frozen=True, slots=True)
class PlayFinished:
    """The last sample of a reply was handed out."""

    turn: int


@dataclass(frozen=True, slots=True)
class Tick:
    """The caller's clock stands at ``at``; ``heard`` samples (16 kHz) of the agent's voice were played since."""

    at: int
    heard: int = 0


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """The client wants the reply to stop."""


@dataclass(frozen=True, slots=True)
class RanLong:
    """The reply is longer than any may be."""


@dataclass(frozen=True, slots=True)
class HungUp:
    """The transport is gone, or the server wants to end the call."""

    reason: str


Event = (Hint | Onset | Offset | Ruled | ReplyOpened | ReplyClosed | PlayStarted | PlayFinished | Tick | CancelAsked
         | RanLong | HungUp)


# --- effects out --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Duck:
    """Lower the reply's volume."""


@dataclass(frozen=True, slots=True)
class Unduck:
    """Restore the reply's volume."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Hold the reply from the next frame on. ``onset_at`` is the sample at which the speech began."""

    onset_at: int


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the reply where it was held."""


class Cause(Enum):
    """Why a reply is cut."""

    SPEECH = "speech"
    CLIENT = "client"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Cut reply ``turn`` at the playhead: raise the epoch, drop all that is queued for the caller's ear."""

    turn: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class Announce:
    """The state is now another one."""

    state: State


@dataclass(frozen=True, slots=True)
class End:
    """Give everything back."""

    reason: str


Effect = Duck | Unduck | Pause | Resume | Interrupt | Announce | End
