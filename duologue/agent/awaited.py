"""What a call waits for in the caller's time: the reply a client has asked for, the end of one that is being written.

The model's clock is the caller's samples, so while something is awaited they have to go on coming, and after a bound
it is awaited no longer. Pure; positions are samples (16 kHz).
"""

from __future__ import annotations

from enum import Enum

from duologue.engine import INPUT_RATE

ANSWER_WITHIN = 12 * INPUT_RATE
"""A request that nothing came of in so many samples is answered with an empty response: LiveKit's client gives up its
own requests after 10 s, and a model that is made to speak at the latest (8 units of 1 s) still gets its say."""

REPLY_WITHIN = 180 * INPUT_RATE
"""A reply that is still being written so long after it began is awaited no longer: the playout holds no more."""


class Late(Enum):
    """What was awaited for too long."""

    ANSWER = "answer"
    REPLY = "reply"


class Awaited:
    """A request for a reply, at most one, and the replies that are being written."""

    def __init__(self) -> None:
        self._asked_at: int | None = None
        self._writing: dict[int, int] = {}

    @property
    def asked(self) -> bool:
        """Whether a request waits for its answer."""
        return self._asked_at is not None

    @property
    def anything(self) -> bool:
        """Whether time has to go on."""
        return self.asked or bool(self._writing)

    def ask(self, at: int) -> None:
        """The client asks for a reply; a request that waits already is forgotten for it."""
        self._asked_at = at

    def answered(self) -> None:
        """The request is answered, or taken back."""
        self._asked_at = None

    def begun(self, turn: int, at: int) -> None:
        """A reply began, which answers the request."""
        self._writing[turn] = at
        self._asked_at = None

    def written(self, turn: int) -> None:
        """The reply's text is whole, or no more of it will come."""
        self._writing.pop(turn, None)

    def late(self, at: int) -> Late | None:
        """What has been awaited for too long, and from here on is not: said once."""
        if self._asked_at is not None and not self._writing and at - self._asked_at >= ANSWER_WITHIN:
            self._asked_at = None
            return Late.ANSWER
        if any(at - began >= REPLY_WITHIN for began in self._writing.values()):
            self._writing.clear()
            return Late.REPLY
        return None
