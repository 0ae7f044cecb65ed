"""New offers within a running call (RFC 3261 section 14, UPDATE of RFC 3311): hold, resume, a moved address.

One exchange at a time: an offer of the other end that comes while ours is out is answered 491 (glare), one that comes
while the owner still thinks about the last is answered 500; ours wait until nothing else is under way.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import CallEnded, OfferRefused
from duologue.agent.transports.sip.signalling import session_timer
from duologue.agent.transports.sip.signalling.transaction_layer import ClientTransaction, ServerTransaction, Timer
from duologue.agent.transports.sip.signalling.transactions import GIVE_UP, T1, T2
from duologue.agent.transports.sip.signalling.wire import plain, reply, sdp_of, seconds_in, set_sdp

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.leg import Leg

MAX_WAITING = 8
"""Offers of ours that may wait for their turn."""

MAX_TRIES = 5
"""How often an offer is sent again after 491 or 422."""

OnDone = Callable[[str | OfferRefused | CallEnded], None]


class UnackedAnswer:
    """A 2xx to INVITE, sent again until its ACK comes (section 13.3.1.4)."""

    def __init__(self, leg: Leg, transaction: ServerTransaction, response: Response,
                 on_ack: Callable[[Request | None], None]) -> None:
        """``on_ack`` is called once: with the ACK, or with None when none came in time."""
        self._leg = leg
        self._transaction = transaction
        self._response = response
        self._on_ack = on_ack
        self._interval = T1
        self._give_up_at = leg.clock.time() + GIVE_UP
        self._timer: Timer = leg.clock.call_at(leg.clock.time() + T1, self._again)
        transaction.respond(response)

    def acked(self, ack: Request) -> None:
        """The ACK came."""
        self._timer.cancel()
        self._on_ack(ack)

    def stop(self) -> None:
        """Send it no more, tell nobody."""
        self._timer.cancel()

    def _again(self) -> None:
        now = self._leg.clock.time()
        if now >= self._give_up_at:
            self._on_ack(None)
            return
        self._interval = min(2 * self._interval, T2)
        self._timer = self._leg.clock.call_at(min(now + self._interval, self._give_up_at), self._again)
        self._transaction.respond(self._response)


@dataclass
class _Theirs:
    transaction: ServerTransaction
    agreed: session_timer.SessionTimer
    delayed: bool


@dataclass
class _Ours:
    sdp: str
    on_done: OnDone
    tries: int = 0
    min_se: int = 0


class Reoffers:
    """Both directions of one leg's later offer/answer exchanges."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg
        self._theirs: _Theirs | None = None
        self._unacked: UnackedAnswer | None = None
        self._ours: _Ours | None = None
        self._waiting: deque[_Ours] = deque()
        self._retry: Timer | None = None

    # --- theirs --------------------------------------------------------------------------------------------

    def receive(self, transaction: ServerTransaction) -> None:
        """Take a re-INVITE or UPDATE."""
        leg, request = self._leg, transaction.request
        if request.method == "UPDATE" and leg.confirmed and sdp_of(request) is None:
            self._refresh(transaction)
            return
        if self._theirs is not None:
            transaction.respond(reply(request, 500, "An Offer Is Being Answered",
                                      headers={"Retry-After": str(random.randint(1, 10))}))
            return
        if (self._ours is not None and self._retry is None) or self._unacked is not None or not leg.confirmed:
            transaction.respond(reply(request, 491))
            return
        agreed = leg.agree_timer(transaction)
        if agreed is None:
            return
        sdp = sdp_of(request)
        self._theirs = theirs = _Theirs(transaction, agreed, sdp is None)
        if request.method == "INVITE":
            transaction.respond(reply(request, 100))
            transaction.on_cancel = lambda: self._cancelled(theirs)
        leg.tell(lambda: leg.listener.on_offer(sdp or ""))

    def _refresh(self, transaction: ServerTransaction) -> None:
        """Take an UPDATE that only keeps the session alive: it is no offer and waits for none."""
        leg, request = self._leg, transaction.request
        agreed = leg.agree_timer(transaction)
        if agreed is not None:
            leg.dialog.refresh_target(request)
            transaction.respond(leg.acceptance(request, agreed, None))
            leg.refresher.agreed(agreed, "uas")

    def accept(self, sdp: str) -> None:
        """Answer the offer that is being answered; nothing if it was withdrawn."""
        theirs, self._theirs = self._theirs, None
        if theirs is None:
            return
        leg, request = self._leg, theirs.transaction.request
        leg.dialog.refresh_target(request)
        leg.local_sdp = sdp
        response = leg.acceptance(request, theirs.agreed, sdp)
        if request.method == "INVITE":
            self._unacked = UnackedAnswer(leg, theirs.transaction, response,
                                          lambda ack: self._acked(ack, theirs.delayed))
        else:
            theirs.transaction.respond(response)
        leg.refresher.agreed(theirs.agreed, "uas")
        self._next()

    def refuse(self, why: str) -> None:
        """Refuse the offer that is being answered with 488."""
        theirs, self._theirs = self._theirs, None
        if theirs is not None:
            theirs.transaction.respond(reply(theirs.transaction.request, 488, headers=warning(why)))
            self._next()

    def ack(self, ack: Request) -> None:
        """Take an ACK of the dialog."""
        if self._unacked is not None:
            self._unacked.acked(ack)

    def _acked(self, ack: Request | None, delayed: bool) -> None:
        self._unacked = None
        if ack is None:
            self._leg.lost()
        elif delayed:
            self._leg.answered_with(sdp_of(ack))
        self._next()

    def _cancelled(self, theirs: _Theirs) -> None:
        if self._theirs is theirs:
            self._theirs = None
            theirs.transaction.respond(reply(theirs.transaction.request, 487))
            self._leg.drop_offer()
            self._next()

    # --- ours ----------------------------------------------------------------------------------------------

    def offer(self, sdp: str, on_done: OnDone) -> None:
        """Send a new offer as soon as nothing else is under way; ``on_done`` is called once."""
        if self._leg.ended is not None or len(self._waiting) >= MAX_WAITING:
            on_done(CallEnded("the call has ended") if self._leg.ended else OfferRefused(491, "too many offers wait"))
            return
        self._waiting.append(_Ours(sdp, on_done))
        self._next()

    def confirmed(self) -> None:
        """The call is up: what waits may go."""
        self._next()

    def _next(self) -> None:
        free = self._theirs is None and self._unacked is None and self._leg.confirmed and self._leg.ended is None
        if free and self._ours is None and self._waiting:
            self._ours = self._waiting.popleft()
            self._send()

    def _send(self) -> None:
        ours = self._ours
        self._retry = None
        if ours is None:
            return
        leg = self._leg

        def build() -> Request:
            request = leg.request("INVITE")
            session_timer.ask(request, leg.config.session_timers, ours.min_se)
            set_sdp(request, ours.sdp)
            return request

        def sent(client: ClientTransaction) -> None:
            client.limit_to(GIVE_UP)

        leg.ask(build, lambda response, request: self._responded(ours, response, request), sent)

    def _responded(self, ours: _Ours, response: Response, request: Request) -> None:
        leg = self._leg
        if response.code < 200:
            return
        if response.code < 300:
            leg.acknowledge(request)
            if self._ours is ours and leg.ended is None:
                self._accepted(ours, response)
            return
        if self._ours is not ours:
            return
        if response.code in (491, 422) and ours.tries < MAX_TRIES and self._again(ours, response):
            return
        self._done(ours, OfferRefused(response.code, response.phrase))
        if response.code in (408, 481):
            leg.lost()  # section 14.1: the other end does not know this call any more

    def _accepted(self, ours: _Ours, response: Response) -> None:
        leg = self._leg
        leg.dialog.refresh_target(response)
        leg.local_sdp = ours.sdp
        leg.refresher.agreed(session_timer.accept(response), "uac")
        answer = sdp_of(response)
        if answer is None:
            self._done(ours, OfferRefused(response.code, "the answer has no SDP"))
        else:
            self._done(ours, answer)

    def _again(self, ours: _Ours, response: Response) -> bool:
        """Try again: at once with a longer interval, or after the pause that resolves glare (section 14.1)."""
        ours.tries += 1
        pause = 0.0
        if response.code == 422:
            least = seconds_in(response, "Min-SE")
            if least is None or least <= ours.min_se:
                return False
            ours.min_se = least
        else:
            pause = random.uniform(2.1, 4.0) if self._leg.owns_call_id else random.uniform(0.0, 2.0)
        self._retry = self._leg.clock.call_at(self._leg.clock.time() + pause, self._retry_now)
        return True

    def _retry_now(self) -> None:
        if self._theirs is not None or self._unacked is not None:
            self._retry = self._leg.clock.call_at(self._leg.clock.time() + T1, self._retry_now)
        else:
            self._send()

    def _done(self, ours: _Ours, outcome: str | OfferRefused | CallEnded) -> None:
        self._ours = None
        ours.on_done(outcome)
        self._next()

    # --- the end -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """The call is over: answer and tell whoever waits."""
        theirs, self._theirs = self._theirs, None
        if theirs is not None:
            theirs.transaction.respond(reply(theirs.transaction.request, 487))
        if self._unacked is not None:
            self._unacked.stop()
        if self._retry is not None:
            self._retry.cancel()
        pending = [self._ours] if self._ours is not None else []
        pending += self._waiting
        self._ours = None
        self._waiting.clear()
        for ours in pending:
            ours.on_done(CallEnded("the call has ended"))


def warning(why: str) -> dict[str, str]:
    """The Warning header of a 488 (RFC 3261 section 20.43; 399 is the code for any other text)."""
    text = plain(why).replace("\\", "").replace('"', "'")
    return {"Warning": f'399 duologue "{text}"'} if text else {}
