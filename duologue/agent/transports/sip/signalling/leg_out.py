"""A call out: from its INVITE to its ACK, or its CANCEL (RFC 3261 sections 9.1 and 13.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sipmessage import URI, CSeq, Request, Response

from duologue.agent.transports.sip.calls import Ended, EndReason
from duologue.agent.transports.sip.signalling import session_timer
from duologue.agent.transports.sip.signalling.dialog import MAX_FORWARDS, Dialog
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.leg import ALLOW, SUPPORTED, Leg
from duologue.agent.transports.sip.signalling.transaction_layer import ClientTransaction
from duologue.agent.transports.sip.signalling.transactions import GIVE_UP
from duologue.agent.transports.sip.signalling.wire import Hop, listed, new_token, sdp_of, seconds_in, set_sdp, tag_of

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.endpoint import Endpoint

MAX_FORKS = 16
"""Answers of so many phones to one INVITE are kept apart; what is above is dropped."""

_LOCAL_TIMEOUT = "No Response"


class OutgoingLeg(Leg):
    """The side that calls."""

    def __init__(self, endpoint: Endpoint, target: URI, caller: URI, hop: Hop, sdp: str,
                 digest: DigestClient | None) -> None:
        super().__init__(endpoint, hop)
        self.target = target
        self.caller = caller
        self.digest = digest
        self.owns_call_id = True
        self.local_sdp = sdp
        self._hop = hop
        self._call_id = f"{new_token()}{new_token()}"
        self._tag = new_token()
        self._cseq = 0
        self._min_se = 0
        self._client: ClientTransaction | None = None
        self._ringing = False
        self._cancel_wanted = False
        self._cancel_sent = False
        self._early: dict[str, str] = {}
        self._forks: dict[str, Dialog] = {}
        self._give_up = self.clock.call_at(self.clock.time() + self.config.ring_timeout_s, self._too_late)

    def start(self) -> None:
        """Send the INVITE, unless it was given up already."""
        if self.ended is not None:
            return
        self.endpoint.ask(self._build, self._hop, self._responded, self.digest, self._sent,
                          lambda: self.ended is None)

    def hang_up(self, reason: EndReason = "closed") -> None:
        """CANCEL before the answer, BYE after it."""
        if self.ended is None and not self.confirmed:
            self._cancel()
            self.end(Ended(reason))
        else:
            super().hang_up(reason)

    def end(self, ended: Ended) -> None:
        """Stop waiting for an answer too."""
        self._give_up.cancel()
        super().end(ended)

    def _build(self) -> Request:
        self._cseq += 1
        request = Request("INVITE", self.target)
        request.headers.set("Max-Forwards", str(MAX_FORWARDS))
        request.headers.set("From", f"<{self.caller}>;tag={self._tag}")
        request.headers.set("To", f"<{self.target}>")
        request.call_id = self._call_id
        request.cseq = CSeq(sequence=self._cseq, method="INVITE")
        request.headers.set("Contact", self.endpoint.contact(self._hop))
        request.headers.set("Allow", ALLOW)
        request.headers.set("Supported", ", ".join(SUPPORTED))
        session_timer.ask(request, self.config.session_timers, self._min_se)
        set_sdp(request, self.local_sdp)
        return request

    def _sent(self, client: ClientTransaction) -> None:
        self._client = client
        self._ringing = False

    def _responded(self, response: Response, request: Request) -> None:
        if response.code < 200:
            self._progress(response)
        elif response.code < 300:
            self._answered(response, request)
        elif self.ended is not None:
            pass
        elif response.code == 422 and self._longer_session(response):
            self.start()
        elif response.code == 408 and response.phrase == _LOCAL_TIMEOUT:
            self.end(Ended("no answer", 408, response.phrase))
        else:
            self.end(Ended("refused", response.code, response.phrase))

    def _progress(self, response: Response) -> None:
        self._ringing = True
        sdp, tag = sdp_of(response), tag_of(response, "To")
        if sdp is not None and len(self._early) < MAX_FORKS:
            self._early.setdefault(tag, sdp)
        if self._cancel_wanted:
            self._cancel()

    def _answered(self, response: Response, request: Request) -> None:
        """ACK each 2xx; the first makes the call, and phones that answer besides are hung up (section 13.2.2.4)."""
        tag = tag_of(response, "To")
        known = self._forks.get(tag)
        if known is not None:
            self.endpoint.acknowledge(known, request)
            return
        if len(self._forks) >= MAX_FORKS:
            return
        try:
            dialog = self._forks[tag] = Dialog.of_client(request, response, self._hop)
        except ValueError:
            if self.ended is None:
                self.end(Ended("refused", 502, "the answer has no usable Contact"))
            return
        self.endpoint.acknowledge(dialog, request)
        if self.ended is not None or self.confirmed:
            self.endpoint.hang_up_fork(dialog, self.digest)
            return
        self._give_up.cancel()
        self.dialog = dialog
        self.peer_allows = set(listed(response, "Allow"))
        self.endpoint.remember(self)
        self.endpoint.leg_answered(self)
        self.refresher.agreed(session_timer.accept(response), "uac")
        self.confirm()
        self.answered_with(sdp_of(response) or self._early.get(tag))

    def _longer_session(self, response: Response) -> bool:
        least = seconds_in(response, "Min-SE")
        if least is None or least <= self._min_se:
            return False
        self._min_se = least
        return True

    def _cancel(self) -> None:
        """CANCEL may only follow a provisional response; until one comes, the wish is kept (section 9.1)."""
        self._cancel_wanted = True
        if self._client is None or not self._ringing or self._cancel_sent:
            return
        self._cancel_sent = True
        invite = self._client.request
        cancel = Request("CANCEL", invite.uri)
        for name in ("Via", "Route", "Max-Forwards", "From", "To", "Call-ID"):
            values = invite.headers.getlist(name)
            if values:
                cancel.headers.setlist(name, list(values))
        cancel.cseq = CSeq(sequence=self._cseq, method="CANCEL")
        self.endpoint.send_as_is(cancel, self._hop)
        self._client.limit_to(GIVE_UP)

    def _too_late(self) -> None:
        self.hang_up("no answer")
