"""The four transaction state machines of RFC 3261 section 17, with the Accepted states of RFC 6026.

Pure objects: time and messages in, effects out. What each timer means is told where it is set. All times are seconds
on the caller's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from sipmessage import CSeq, Request, Response

from duologue.agent.transports.sip.signalling.wire import cseq_of

T1 = 0.5
"""Estimate of the round trip (RFC 3261 section 17.1.1.1)."""
T2 = 4.0
"""Longest interval between retransmissions of a non-INVITE request or an INVITE's response."""
T4 = 5.0
"""How long the network may hold a message."""
GIVE_UP = 64 * T1
"""Timers B, F, H, J, L and M: after so long the other end is taken not to react."""
TIMER_D = 32.0
"""How long a client waits for retransmissions of a final response over UDP: "at least 32 s"."""


class State(Enum):
    """Where a transaction stands."""

    CALLING = auto()
    TRYING = auto()
    PROCEEDING = auto()
    ACCEPTED = auto()
    COMPLETED = auto()
    CONFIRMED = auto()
    TERMINATED = auto()


@dataclass(frozen=True)
class Transmit:
    """Send this."""

    message: Request | Response


@dataclass(frozen=True)
class Pass:
    """Hand this to the transaction's user."""

    message: Request | Response


@dataclass(frozen=True)
class TimedOut:
    """Tell the user that the other end did not react: a client got no final response, a server no ACK."""


Effect = Transmit | Pass | TimedOut


class Transaction:
    """What the four have in common: a state and running timers."""

    def __init__(self, reliable: bool) -> None:
        """``reliable``: the transport retransmits by itself (TCP, TLS)."""
        self.state = State.TERMINATED
        self._reliable = reliable
        self._timers: dict[str, float] = {}
        self._intervals: dict[str, float] = {}

    @property
    def deadline(self) -> float | None:
        """When ``expire`` is due next; None if no timer runs."""
        return min(self._timers.values(), default=None)

    def expire(self, now: float) -> list[Effect]:
        """Let all timers fire that are due."""
        effects: list[Effect] = []
        while self._timers and self.state is not State.TERMINATED:
            name = min(self._timers, key=lambda each: self._timers[each])
            at = self._timers[name]
            if at > now:
                break
            del self._timers[name]
            effects += self._fire(name, at)
        return effects

    def _fire(self, timer: str, now: float) -> list[Effect]:
        raise NotImplementedError

    def _enter(self, state: State, timer: str = "", at: float = 0.0) -> None:
        """Change the state: all timers stop, and at most one starts."""
        self.state = state
        self._timers.clear()
        if state is not State.TERMINATED and timer:
            self._timers[timer] = at

    def _repeat(self, timer: str, now: float, *, longest: float = float("inf"), first: float = T1) -> None:
        """Set a retransmission timer whose interval doubles with each use."""
        interval = self._intervals.get(timer)
        interval = first if interval is None else min(2 * interval, longest)
        self._intervals[timer] = interval
        self._timers[timer] = now + interval


class InviteClient(Transaction):
    """INVITE sent (section 17.1.1): calling, proceeding, accepted or completed, terminated."""

    def __init__(self, request: Request, reliable: bool) -> None:
        super().__init__(reliable)
        self.request = request
        self._ack: Request | None = None

    def start(self, now: float) -> list[Effect]:
        """Send the request."""
        self._enter(State.CALLING, "B", now + GIVE_UP)
        if not self._reliable:
            self._repeat("A", now)
        return [Transmit(self.request)]

    def receive(self, response: Response, now: float) -> list[Effect]:
        """Take a response that matches this transaction."""
        if self.state in (State.CALLING, State.PROCEEDING):
            if response.code < 200:
                self._enter(State.PROCEEDING)  # nothing limits how long it rings but the user's CANCEL
                return [Pass(response)]
            if response.code < 300:
                self._enter(State.ACCEPTED, "M", now + GIVE_UP)
                return [Pass(response)]
            self._ack = self._make_ack(response)
            if self._reliable:
                self._enter(State.TERMINATED)
            else:
                self._enter(State.COMPLETED, "D", now + TIMER_D)
            return [Transmit(self._ack), Pass(response)]
        if self.state is State.ACCEPTED and 200 <= response.code < 300:
            return [Pass(response)]  # repeated, or of another fork: the user ACKs each
        if self.state is State.COMPLETED and response.code >= 300 and self._ack is not None:
            return [Transmit(self._ack)]
        return []

    def _fire(self, timer: str, now: float) -> list[Effect]:
        if timer == "A":
            self._repeat("A", now)
            return [Transmit(self.request)]
        self._enter(State.TERMINATED)
        return [TimedOut()] if timer == "B" else []

    def _make_ack(self, response: Response) -> Request:
        """The ACK of a refusal is part of the transaction (section 17.1.1.3)."""
        ack = Request("ACK", self.request.uri)
        for name in ("Via", "From", "Call-ID", "Route", "Max-Forwards"):
            values = self.request.headers.getlist(name)
            if values:
                ack.headers.setlist(name, values[:1] if name == "Via" else list(values))
        ack.headers.setlist("To", list(response.headers.getlist("To")))
        ack.cseq = CSeq(sequence=cseq_of(self.request).sequence, method="ACK")
        return ack


class NonInviteClient(Transaction):
    """Any other request sent (section 17.1.2): trying, proceeding, completed, terminated."""

    def __init__(self, request: Request, reliable: bool) -> None:
        super().__init__(reliable)
        self.request = request

    def start(self, now: float) -> list[Effect]:
        """Send the request."""
        self._enter(State.TRYING, "F", now + GIVE_UP)
        if not self._reliable:
            self._repeat("E", now, longest=T2)
        return [Transmit(self.request)]

    def receive(self, response: Response, now: float) -> list[Effect]:
        """Take a response that matches this transaction."""
        if self.state not in (State.TRYING, State.PROCEEDING):
            return []
        if response.code < 200:
            self.state = State.PROCEEDING  # timer F goes on
            if not self._reliable:
                self._intervals["E"] = T2
                self._timers["E"] = now + T2
            return [Pass(response)]
        if self._reliable:
            self._enter(State.TERMINATED)
        else:
            self._enter(State.COMPLETED, "K", now + T4)
        return [Pass(response)]

    def _fire(self, timer: str, now: float) -> list[Effect]:
        if timer == "E":
            self._repeat("E", now, longest=T2)
            return [Transmit(self.request)]
        self._enter(State.TERMINATED)
        return [TimedOut()] if timer == "F" else []


class InviteServer(Transaction):
    """INVITE received (section 17.2.1): proceeding, accepted or completed, confirmed, terminated."""

    def __init__(self, request: Request, reliable: bool) -> None:
        super().__init__(reliable)
        self.request = request
        self.state = State.PROCEEDING
        self._last: Response | None = None

    def receive(self, request: Request, now: float) -> list[Effect]:
        """Take the INVITE again, or the ACK of a refusal."""
        if request.method == "ACK":
            if self.state is State.COMPLETED:
                if self._reliable:
                    self._enter(State.TERMINATED)
                else:
                    self._enter(State.CONFIRMED, "I", now + T4)
            return []
        if self.state in (State.PROCEEDING, State.COMPLETED) and self._last is not None:
            return [Transmit(self._last)]
        return []  # accepted: the user itself repeats its 2xx until it is acknowledged

    def respond(self, response: Response, now: float) -> list[Effect]:
        """Send the user's response; a repeated 2xx too."""
        if self.state is State.ACCEPTED and 200 <= response.code < 300:
            return [Transmit(response)]
        if self.state is not State.PROCEEDING:
            return []
        self._last = response
        if response.code >= 300:
            self._enter(State.COMPLETED, "H", now + GIVE_UP)
            if not self._reliable:
                self._repeat("G", now, longest=T2)
        elif response.code >= 200:
            self._enter(State.ACCEPTED, "L", now + GIVE_UP)
        return [Transmit(response)]

    def _fire(self, timer: str, now: float) -> list[Effect]:
        if timer == "G" and self._last is not None:
            self._repeat("G", now, longest=T2)
            return [Transmit(self._last)]
        self._enter(State.TERMINATED)
        return [TimedOut()] if timer == "H" else []


class NonInviteServer(Transaction):
    """Any other request received (section 17.2.2): trying, proceeding, completed, terminated."""

    def __init__(self, request: Request, reliable: bool) -> None:
        super().__init__(reliable)
        self.request = request
        self.state = State.TRYING
        self._last: Response | None = None

    def receive(self, request: Request, now: float) -> list[Effect]:
        """Take the request again."""
        return [] if self._last is None else [Transmit(self._last)]

    def respond(self, response: Response, now: float) -> list[Effect]:
        """Send the user's response."""
        if self.state not in (State.TRYING, State.PROCEEDING):
            return []
        self._last = response
        if response.code < 200:
            self.state = State.PROCEEDING
        elif self._reliable:
            self._enter(State.TERMINATED)
        else:
            self._enter(State.COMPLETED, "J", now + GIVE_UP)
        return [Transmit(response)]

    def _fire(self, timer: str, now: float) -> list[Effect]:
        self._enter(State.TERMINATED)
        return []
