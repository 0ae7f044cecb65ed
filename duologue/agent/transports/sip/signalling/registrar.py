"""A registrar for desk phones (RFC 3261 section 10.3): in memory, bounded, forgetting what expired."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sipmessage import URI, Request, Response

from duologue.agent.transports.sip.config import SipLimits
from duologue.agent.transports.sip.signalling.grammar import read_address, split_list
from duologue.agent.transports.sip.signalling.transaction_layer import Clock
from duologue.agent.transports.sip.signalling.wire import Hop, cseq_of, reply

MIN_EXPIRES_S = 60
"""A shorter registration is answered 423: it would cost more than it tells."""
MAX_EXPIRES_S = 3600
"""A longer one is cut to this; the RFC's own default."""


@dataclass(frozen=True)
class Binding:
    """Where a user's phone is."""

    contact: URI
    source: Hop
    """What the REGISTER came by: the way back to a phone behind NAT, or on a connection that it opened."""
    expires_at: float
    call_id: str
    cseq: int


class Registrar:
    """Users' contacts."""

    def __init__(self, clock: Clock, limits: SipLimits) -> None:
        self._clock = clock
        self._limits = limits
        self._bindings: dict[str, dict[str, Binding]] = {}

    def __len__(self) -> int:
        return sum(len(bindings) for bindings in self._bindings.values())

    def lookup(self, user: str) -> list[Binding]:
        """The user's phones, the last registered first."""
        return sorted(self._live(user).values(), key=lambda binding: -binding.expires_at)

    def register(self, request: Request, user: str, source: Hop) -> Response:
        """Serve a REGISTER of ``user``, who has authenticated."""
        if read_address(request.headers["To"]).uri.user != user:
            return reply(request, 403, "Not Your Address Of Record")
        contacts = split_list(request.headers.getlist("Contact"))
        default = request.headers.get("Expires") or str(MAX_EXPIRES_S)
        bindings = dict(self._live(user))
        if contacts == ["*"]:
            if default.strip() != "0":
                return reply(request, 400, "Contact * Needs Expires 0")
            bindings.clear()
        else:
            refusal = self._update(bindings, request, contacts, default, source)
            if refusal is not None:
                return refusal
        others = len(self) - len(self._live(user))
        if len(bindings) > self._limits.bindings_per_user or others + len(bindings) > self._limits.bindings:
            return reply(request, 503, headers={"Retry-After": str(self._limits.retry_after_s)})
        if bindings:
            self._bindings[user] = bindings
        else:
            self._bindings.pop(user, None)
        response = reply(request, 200)
        now = self._clock.time()
        response.headers.setlist("Contact", [f"<{binding.contact}>;expires={round(binding.expires_at - now)}"
                                             for binding in bindings.values()])
        return response

    def _update(self, bindings: dict[str, Binding], request: Request, contacts: list[str], default: str,
                source: Hop) -> Response | None:
        """Change ``bindings`` as the request says; returns the refusal if it cannot be served as a whole."""
        cseq = cseq_of(request).sequence
        for contact in contacts:
            address = read_address(contact)
            text = address.parameters.get("expires") or default
            seconds = int(text) if re.fullmatch(r"\s*[0-9]{1,10}\s*", text) else MAX_EXPIRES_S
            if 0 < seconds < MIN_EXPIRES_S:
                return reply(request, 423, headers={"Min-Expires": str(MIN_EXPIRES_S)})
            if address.uri.scheme == "tel" or not address.uri.host:
                return reply(request, 400, "Contact Is No SIP URI")
            key = str(address.uri)
            old = bindings.get(key)
            if old is not None and old.call_id == request.call_id and cseq <= old.cseq:
                return reply(request, 500, "CSeq Out Of Order")
            if seconds == 0:
                bindings.pop(key, None)
            else:
                expires_at = self._clock.time() + min(seconds, MAX_EXPIRES_S)
                bindings[key] = Binding(address.uri, source, expires_at, request.call_id, cseq)
        return None

    def _live(self, user: str) -> dict[str, Binding]:
        now = self._clock.time()
        return {key: binding for key, binding in self._bindings.get(user, {}).items() if binding.expires_at > now}
