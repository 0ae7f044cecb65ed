"""One call's signalling once it is set up: what both directions have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import Ended, EndReason, NotAcceptable, TransferOutcome
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.signalling import session_timer
from duologue.agent.transports.sip.signalling.dialog import Dialog
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.info import ACCEPTED, read_digits
from duologue.agent.transports.sip.signalling.refer import Transfer
from duologue.agent.transports.sip.signalling.refresher import Refresher
from duologue.agent.transports.sip.signalling.reoffers import Reoffers
from duologue.agent.transports.sip.signalling.transaction_layer import (
    ClientTransaction,
    Clock,
    ServerTransaction,
    Timer,
)
from duologue.agent.transports.sip.signalling.wire import Hop, listed, media_type, plain, reply

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.endpoint import Endpoint

ALLOW = "INVITE, ACK, CANCEL, BYE, OPTIONS, INFO, UPDATE, NOTIFY"
SUPPORTED = ("timer",)
"""Extensions that the other end may require."""


class LegListener(Protocol):
    """Whom a leg tells; all synchronous."""

    def on_offer(self, sdp: str) -> None:
        """Begin to answer an offer: ``accept_offer`` or ``refuse_offer`` follows."""

    def on_offer_withdrawn(self) -> None:
        """Answer the last offer no more."""

    def on_answered(self, sdp: str) -> None:
        """See ``CallOwner.on_answered``."""

    def on_digits(self, digits: str) -> None:
        """See ``CallOwner.on_digits``."""

    def on_ended(self, ended: Ended) -> None:
        """See ``CallOwner.on_ended``."""


class Leg:
    """A call's dialog and what happens in it. Subclasses set it up."""

    dialog: Dialog
    """There once ``confirmed``; for a call in from the start."""

    def __init__(self, endpoint: Endpoint, source: Hop) -> None:
        self.endpoint = endpoint
        self.clock: Clock = endpoint.clock
        self.config: SipConfig = endpoint.config
        self.source = source
        self.listener: LegListener = _Nobody()
        self.ended: Ended | None = None
        self.confirmed = False
        """INVITE, 2xx and ACK are exchanged."""
        self.local_sdp = ""
        self.peer_allows: set[str] = set()
        self.digest: DigestClient | None = None
        self.owns_call_id = False
        self.reoffers = Reoffers(self)
        self.refresher = Refresher(self)
        self._transfer: Transfer | None = None
        self._transfer_timer: Timer | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of the dialog is left to be done."""
        return self.ended is not None

    # --- what the owner does -------------------------------------------------------------------------------

    def accept_offer(self, sdp: str) -> None:
        """Answer the offer of ``on_offer``."""
        self.reoffers.accept(sdp)

    def refuse_offer(self, why: str) -> None:
        """Refuse the offer of ``on_offer``."""
        self.reoffers.refuse(why)

    def transfer(self, target: str, on_outcome: Callable[[TransferOutcome], None]) -> None:
        """Send a REFER to the URI ``target``; one at a time."""
        if self._transfer is not None and not self._transfer.done:
            on_outcome(TransferOutcome(491, "a transfer is under way"))
            return
        transfer = self._transfer = Transfer(on_outcome)

        def build() -> Request:
            request = self.request("REFER")
            request.headers.set("Refer-To", f"<{target}>")
            return request

        self.ask(build, lambda response, _: transfer.on_response(response))
        if self._transfer_timer is not None:
            self._transfer_timer.cancel()
        self._transfer_timer = self.clock.call_at(self.clock.time() + self.config.ring_timeout_s, transfer.give_up)

    def hang_up(self, reason: EndReason = "closed") -> None:
        """End the call from our side."""
        if self.ended is None:
            self.say_bye()
            self.end(Ended(reason))

    def lost(self) -> None:
        """The other end does not react any more. It is told anyway: it may only not hear us for a while."""
        self.hang_up("lost")

    # --- what comes ----------------------------------------------------------------------------------------

    def receive(self, transaction: ServerTransaction) -> None:
        """Take a request of this dialog (not ACK, not CANCEL)."""
        request = transaction.request
        if not self.dialog.in_order(request):
            transaction.respond(reply(request, 500, "CSeq Out Of Order"))
        elif request.method == "BYE":
            transaction.respond(reply(request, 200))
            if self._transfer is not None:
                self._transfer.other_end_hung_up()
            self.other_end_hung_up(plain(request.headers.get("Reason") or ""))
        elif request.method in ("INVITE", "UPDATE"):
            if request.body and media_type(request) != "application/sdp":
                transaction.respond(reply(request, 415, headers={"Accept": "application/sdp"}))
            else:
                self.reoffers.receive(transaction)
        elif request.method == "INFO":
            transaction.respond(self._take_info(request))
        elif request.method == "NOTIFY":
            transaction.respond(self._take_notify(request))
        elif request.method == "OPTIONS":
            transaction.respond(self.endpoint.capabilities(request))
        elif request.method == "REFER":
            transaction.respond(reply(request, 603, "Transfers Are Not Taken Here"))
        else:
            transaction.respond(reply(request, 405, headers={"Allow": ALLOW}))

    def receive_ack(self, ack: Request) -> None:
        """Take an ACK of this dialog."""
        self.reoffers.ack(ack)

    def other_end_hung_up(self, text: str) -> None:
        """A BYE came."""
        self.end(Ended("hung up", text=text))

    def _take_info(self, info: Request) -> Response:
        if not info.body:
            return reply(info, 200)  # some equipment probes with it
        if media_type(info) not in ACCEPTED:
            return reply(info, 415, headers={"Accept": ", ".join(ACCEPTED)})
        try:
            digits = read_digits(info)
        except ValueError as error:
            return reply(info, 400, str(error))
        self.tell(lambda: self.listener.on_digits(digits))
        return reply(info, 200)

    def _take_notify(self, notify: Request) -> Response:
        event = (notify.headers.get("Event") or "").partition(";")[0].strip().lower()
        if event != "refer":
            return reply(notify, 489, headers={"Allow-Events": "refer"})
        if self._transfer is None:
            return reply(notify, 481)
        return reply(notify, self._transfer.on_notify(notify))

    # --- what the parts use --------------------------------------------------------------------------------

    def request(self, method: str) -> Request:
        """Make a request of this dialog with our Contact."""
        request = self.dialog.request(method)
        if method != "BYE":
            request.headers.set("Contact", self.endpoint.contact(self.source))
        if method in ("INVITE", "UPDATE"):
            request.headers.set("Allow", ALLOW)
            request.headers.set("Supported", ", ".join(SUPPORTED))
        return request

    def ask(self, build: Callable[[], Request], on_response: Callable[[Response, Request], None],
            on_sent: Callable[[ClientTransaction], None] | None = None) -> None:
        """Send a request of this dialog; challenges are met if we have credentials."""
        self.endpoint.ask(build, self.endpoint.hop_of(self.dialog), on_response, self.digest, on_sent)

    def acknowledge(self, invite: Request) -> None:
        """Send the ACK of a 2xx to an INVITE of ours."""
        self.endpoint.acknowledge(self.dialog, invite)

    def agree_timer(self, transaction: ServerTransaction) -> session_timer.SessionTimer | None:
        """Agree on a session timer; None if the request was refused for it."""
        request = transaction.request
        timers = self.config.session_timers
        self.peer_allows = set(listed(request, "Allow")) or self.peer_allows
        try:
            return session_timer.agree(request, timers)
        except session_timer.TooSmall:
            transaction.respond(reply(request, 422, headers={"Min-SE": str(timers.min_s)}))
        except ValueError as error:
            transaction.respond(reply(request, 400, str(error)))
        return None

    def acceptance(self, request: Request, agreed: session_timer.SessionTimer, sdp: str | None) -> Response:
        """Make the 200 of an INVITE or UPDATE."""
        headers = {"Contact": self.endpoint.contact(self.source), "Allow": ALLOW, "Supported": ", ".join(SUPPORTED),
                   "Session-Expires": agreed.header()}
        if agreed.refresher == "uac":
            headers["Require"] = "timer"
        return reply(request, 200, to_tag=self.dialog.local_tag, headers=headers, sdp=sdp)

    def answered_with(self, sdp: str | None) -> None:
        """Give the owner an answer to our offer; the call ends if there is none or it cannot be used."""
        if self.ended is not None:
            return
        if sdp is None:
            self.hang_up("media fault")
            return
        try:
            self.listener.on_answered(sdp)
        except NotAcceptable:
            self.hang_up("media fault")
        except Exception as fault:
            self.endpoint.log.error("owner_failed", fault=fault)
            self.hang_up("media fault")

    def drop_offer(self) -> None:
        """The other end withdrew the offer that the owner was given."""
        self.tell(lambda: self.listener.on_offer_withdrawn())

    def tell(self, what: Callable[[], None]) -> None:
        """Tell the owner; its fault ends this call only."""
        if self.ended is None:
            try:
                what()
            except Exception as fault:
                self.endpoint.log.error("owner_failed", fault=fault)
                self.hang_up("media fault")

    def confirm(self) -> None:
        """The call is set up."""
        if not self.confirmed:
            self.confirmed = True
            self.reoffers.confirmed()

    def say_bye(self) -> None:
        """Send a BYE; what is answered to it changes nothing."""
        self.ask(lambda: self.request("BYE"), _unheard)

    def end(self, ended: Ended) -> None:
        """Tell the owner once, stop everything."""
        if self.ended is not None:
            return
        self.ended = ended
        self.refresher.stop()
        self.reoffers.stop()
        if self._transfer is not None:
            self._transfer.we_hung_up()
        if self._transfer_timer is not None:
            self._transfer_timer.cancel()
        self.endpoint.leg_ended(self)
        try:
            self.listener.on_ended(ended)
        except Exception as fault:
            self.endpoint.log.error("owner_failed", fault=fault)


def _unheard(_response: Response, _request: Request) -> None:
    pass


class _Nobody:
    """Before there is a listener."""

    def on_offer(self, sdp: str) -> None:
        raise NotAcceptable("nobody owns this call yet")

    def on_offer_withdrawn(self) -> None:
        pass

    def on_answered(self, sdp: str) -> None:
        pass

    def on_digits(self, digits: str) -> None:
        pass

    def on_ended(self, ended: Ended) -> None:
        pass
