"""Who may speak in a session's next unit: pure, counts units."""

from __future__ import annotations

from enum import Enum

from pydantic import Field

from duologue.engine.messages import Unit
from duologue.strict import Strict

_SPEECH = 0.5
"""Speech probability from which a unit counts as the caller's speech."""


class FloorOptions(Strict):
    """When a thinker has to speak, and when its silence is a fault."""

    respond_within: int = Field(default=8, gt=0)
    """Units after one in which it was asked to reply by whose last it must begin; until then it is free."""
    unanswered_units: int = Field(default=30, ge=0)
    """Units without a reply since the caller's last speech after which its silence is logged and counted; 0: never."""


class Rule(Enum):
    """What the thinker may do with a unit."""

    FREE = "free"
    LISTEN = "listen"
    SPEAK = "speak"


class Floor:
    """One session's.

    ``auto`` says that the thinker decides by itself, after its first ``force_listen`` units; otherwise it only listens
    until it is asked (turn mode).
    """

    def __init__(self, options: FloorOptions, force_listen: int, *, auto: bool) -> None:
        self._options = options
        self._force_listen = force_listen
        self._auto = auto
        self._asked: int | None = None
        """Units since it was asked to reply; None when it was not, or has begun to."""
        self._silent: int | None = None
        """Units without speech since the caller spoke; None when a reply has begun since."""

    def respond(self) -> None:
        """It is asked to reply."""
        self._asked = 0

    def cancel(self) -> None:
        """It is not asked any more."""
        self._asked = None

    def rule(self, unit: int, *, open: bool) -> Rule:
        """What it may do with unit ``unit``; ``open`` says that a reply is."""
        if open:
            return Rule.FREE
        if self._asked is not None:
            return Rule.SPEAK if self._asked + 1 >= self._options.respond_within else Rule.FREE
        return Rule.FREE if self._auto and unit >= self._force_listen else Rule.LISTEN

    def answered(self, unit: Unit, *, speaks: bool) -> bool:
        """Note what it did with a unit; says whether it has been silent for too long, once for each time it is."""
        if speaks:
            self._asked = self._silent = None
            return False
        if self._asked is not None:
            self._asked += 1
        if unit.speech >= _SPEECH:
            self._silent = 0
            return False
        if self._silent is None or not self._auto:
            return False
        self._silent += 1
        return self._silent == self._options.unanswered_units
