"""A call in: from its INVITE to its ACK (RFC 3261 section 13.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sipmessage import Request

from duologue.agent.transports.sip.calls import Ended, EndReason
from duologue.agent.transports.sip.signalling.dialog import Dialog
from duologue.agent.transports.sip.signalling.leg import Leg
from duologue.agent.transports.sip.signalling.reoffers import UnackedAnswer, warning
from duologue.agent.transports.sip.signalling.session_timer import SessionTimer
from duologue.agent.transports.sip.signalling.transaction_layer import ServerTransaction, Timer
from duologue.agent.transports.sip.signalling.wire import Hop, reply, sdp_of

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.endpoint import Endpoint

RING_AGAIN_S = 60.0
"""RFC 3261 section 13.3.1.1: a provisional response goes out every minute, or proxies give the call up."""


class IncomingLeg(Leg):
    """The side that is called."""

    def __init__(self, endpoint: Endpoint, transaction: ServerTransaction, source: Hop, agreed: SessionTimer,
                 user: str) -> None:
        super().__init__(endpoint, source)
        invite = transaction.request
        self.dialog = Dialog.of_server(invite, transaction.to_tag, source)
        self.user = user
        self.offer = sdp_of(invite)
        self._transaction = transaction
        self._agreed = agreed
        self._unacked: UnackedAnswer | None = None
        self._answered = False
        self._ringing: Timer | None = None
        transaction.on_cancel = self._cancelled
        self._give_up = self.clock.call_at(self.clock.time() + self.config.ring_timeout_s, self._too_late)
        transaction.respond(reply(invite, 100))

    @property
    def invite(self) -> Request:
        """What began the call."""
        return self._transaction.request

    def ring(self) -> None:
        """Send 180, and again every minute."""
        if self.ended is None and not self._answered:
            if self._ringing is not None:
                self._ringing.cancel()
            self._ringing = self.clock.call_at(self.clock.time() + RING_AGAIN_S, self.ring)
            self._transaction.respond(reply(self.invite, 180, to_tag=self.dialog.local_tag,
                                            headers={"Contact": self.endpoint.contact(self.source)}))

    def answer(self, sdp: str) -> None:
        """Send 200 until it is acknowledged."""
        if self.ended is not None or self._answered:
            return
        self._answered = True
        self._stop_ringing()
        self.local_sdp = sdp
        response = self.acceptance(self.invite, self._agreed, sdp)
        self._unacked = UnackedAnswer(self, self._transaction, response, self._acked)
        self.refresher.agreed(self._agreed, "uas")
        self.endpoint.leg_answered(self)

    def refuse(self, status: int, text: str = "", retry_after_s: int | None = None,
               reason: EndReason = "refused") -> None:
        """Send a final response of 300 or above."""
        if self.ended is not None or self._answered:
            return
        headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
        if status == 488:
            headers |= warning(text)
            text = ""
        self._transaction.respond(reply(self.invite, status, text, to_tag=self.dialog.local_tag, headers=headers))
        self.end(Ended(reason, status, text))

    def hang_up(self, reason: EndReason = "closed") -> None:
        """Refuse with 480, or end with BYE; a BYE waits for the ACK (section 15)."""
        if self.ended is None and not self._answered:
            self.refuse(480, reason=reason)
        elif self._unacked is not None:
            self.end(Ended(reason))
        else:
            super().hang_up(reason)

    def receive_ack(self, ack: Request) -> None:
        """The first ACK confirms the call."""
        if self._unacked is not None:
            self._unacked.acked(ack)
        else:
            super().receive_ack(ack)

    def other_end_hung_up(self, text: str) -> None:
        """A BYE before the answer is a CANCEL."""
        if not self._answered:
            self._cancelled()
            return
        if self._unacked is not None:  # section 15.1.2: who hangs up has seen our answer
            self._unacked.stop()
            self._unacked = None
        super().other_end_hung_up(text)

    def end(self, ended: Ended) -> None:
        """Stop ringing too."""
        self._stop_ringing()
        super().end(ended)

    @property
    def over(self) -> bool:
        """Whether nothing of the dialog is left to be done."""
        return self.ended is not None and self._unacked is None

    def _acked(self, ack: Request | None) -> None:
        self._unacked = None
        if self.ended is not None:  # hung up meanwhile
            self.say_bye()
            self.endpoint.forget(self)
        elif ack is None:
            self.lost()
        else:
            self.confirm()
            if self.offer is None:
                self.answered_with(sdp_of(ack))

    def _cancelled(self) -> None:
        if self.ended is None and not self._answered:
            self._transaction.respond(reply(self.invite, 487, to_tag=self.dialog.local_tag))
            self.end(Ended("cancelled"))

    def _too_late(self) -> None:
        self.refuse(480, reason="no answer")

    def _stop_ringing(self) -> None:
        self._give_up.cancel()
        if self._ringing is not None:
            self._ringing.cancel()
            self._ringing = None
