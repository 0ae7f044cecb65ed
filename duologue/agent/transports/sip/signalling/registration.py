"""Our account at a provider: registered, kept registered, unregistered (RFC 3261 section 10.2)."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

from sipmessage import URI, CSeq, Request, Response

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.calls import Credentials
from duologue.agent.transports.sip.config import SipRegistration
from duologue.agent.transports.sip.signalling.dialog import MAX_FORWARDS, hop_to
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.framing import PING
from duologue.agent.transports.sip.signalling.grammar import read_address, read_uri, split_list
from duologue.agent.transports.sip.signalling.transaction_layer import Timer
from duologue.agent.transports.sip.signalling.wire import Hop, new_token, seconds_in

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.endpoint import Endpoint

BACKOFF_S = 30.0
"""First pause after a failure; it doubles up to ``MAX_BACKOFF_S`` (RFC 5626 section 4.5: all flows are down)."""
MAX_BACKOFF_S = 1800.0

KEEP_ALIVE_S = {"udp": 25.0, "tcp": 110.0, "tls": 110.0}
"""RFC 5626 section 4.4: 95 to 120 s on streams. On UDP its range is 24 to 29 s: shorter than a NAT's memory."""

_log = EventLog(__name__)


class Registration:
    """One account."""

    def __init__(self, endpoint: Endpoint, config: SipRegistration) -> None:
        self._endpoint = endpoint
        self._config = config
        self.registrar = read_uri(config.registrar)
        self.credentials = Credentials(config.auth_user or config.user, config.password.get_secret_value())
        self.hop: Hop = endpoint.local_of(hop_to(read_uri(config.proxy) if config.proxy else self.registrar))
        """Where everything for this provider goes."""
        self.active = False
        """Whether the provider knows where we are."""
        self._digest = DigestClient(self.credentials)
        self._call_id = f"{new_token()}{new_token()}"
        self._tag = new_token()
        self._cseq = 0
        self._expires_s = config.expires_s
        self._failures = 0
        self._closing = False
        self._timer: Timer | None = None
        self._ping: Timer | None = None

    @property
    def address(self) -> URI:
        """Our address of record there."""
        return URI(scheme=self.registrar.scheme, host=self.registrar.host, user=self._config.user,
                   port=self.registrar.port)

    def start(self) -> None:
        """Register now, and go on for as long as this lives."""
        self._timer = None
        self._digest.accepted()
        self._endpoint.ask(self._build, self.hop, self._responded, self._digest)

    def stop(self) -> None:
        """Unregister, if registered."""
        self._closing = True
        for timer in (self._timer, self._ping):
            if timer is not None:
                timer.cancel()
        if self.active:
            self.active = False
            self._digest.accepted()
            self._endpoint.ask(self._build, self.hop, lambda _response, _request: None, self._digest)

    def _build(self) -> Request:
        self._cseq += 1
        request = Request("REGISTER", URI(scheme=self.registrar.scheme, host=self.registrar.host,
                                          port=self.registrar.port))
        request.headers.set("Max-Forwards", str(MAX_FORWARDS))
        request.headers.set("From", f"<{self.address}>;tag={self._tag}")
        request.headers.set("To", f"<{self.address}>")
        request.call_id = self._call_id
        request.cseq = CSeq(sequence=self._cseq, method="REGISTER")
        request.headers.set("Contact", self._endpoint.contact(self.hop, self._config.user))
        request.headers.set("Expires", "0" if self._closing else str(self._expires_s))
        return request

    def _responded(self, response: Response, _request: Request) -> None:
        if response.code < 200 or self._closing:
            return
        if response.code < 300:
            self._registered(self._granted(response))
            return
        least = seconds_in(response, "Min-Expires")
        if response.code == 423 and least is not None and self._expires_s < least:
            self._expires_s = least
            self.start()
            return
        self._failed(response)

    def _registered(self, seconds: int) -> None:
        if not self.active:
            _log.info("sip_registered", registrar=self.registrar.host, expires_s=seconds)
        self.active = True
        self._failures = 0
        # Early enough for a few lost tries, however short the provider's interval is.
        self._again(max(1.0, seconds - max(32.0, seconds / 5) if seconds > 64 else seconds / 2))
        self._keep_alive()

    def _failed(self, response: Response) -> None:
        self.active = False
        pause = min(BACKOFF_S * 2 ** self._failures, MAX_BACKOFF_S) * random.uniform(0.5, 1.0)
        pause = max(pause, min(seconds_in(response, "Retry-After") or 0, MAX_BACKOFF_S))
        self._failures = min(self._failures + 1, 10)
        _log.warning("sip_registration_failed", registrar=self.registrar.host, status=response.code,
                     phrase=response.phrase, again_s=round(pause))
        self._again(pause)

    def _granted(self, response: Response) -> int:
        """The lifetime of our own binding; other phones may be registered beside us."""
        ours = read_address(self._endpoint.contact(self.hop, self._config.user)).uri
        for value in split_list(response.headers.getlist("Contact")):
            try:
                address = read_address(value)
            except ValueError:
                continue
            expires = address.parameters.get("expires") or ""
            if (address.uri.user, address.uri.host, address.uri.port) == (ours.user, ours.host, ours.port) \
                    and re.fullmatch(r"[0-9]{1,9}", expires):
                return max(1, int(expires))
        return max(1, seconds_in(response, "Expires") or self._expires_s)

    def _again(self, pause_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._endpoint.clock.call_at(self._endpoint.clock.time() + pause_s, self.start)

    def _keep_alive(self) -> None:
        """Keep the NAT and the connection open that calls in come by."""
        if self._ping is not None:
            self._ping.cancel()
        pause = KEEP_ALIVE_S[self.hop.transport] * random.uniform(0.9, 1.0)
        self._ping = self._endpoint.clock.call_at(self._endpoint.clock.time() + pause, self._keep_alive_now)

    def _keep_alive_now(self) -> None:
        if self.active:
            self._endpoint.network.send(PING, self.hop)
        self._keep_alive()
