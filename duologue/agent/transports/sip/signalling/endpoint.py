"""The user agent core (RFC 3261 section 8.2): sorts what comes to calls, the registrar or a refusal.

Synchronous and without sockets: bytes and a clock in, bytes out, so that two of them can be joined by a network that
loses, doubles and reorders, on a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Protocol

from sipmessage import URI, Request, Response

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.calls import BadTarget
from duologue.agent.transports.sip.config import SipConfig, TransportName
from duologue.agent.transports.sip.signalling.dialog import Dialog, DialogId, contact_uri, hop_to
from duologue.agent.transports.sip.signalling.digest import Authenticator, Challenge, DigestClient, Unauthorized
from duologue.agent.transports.sip.signalling.leg import ALLOW, SUPPORTED, Leg
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg
from duologue.agent.transports.sip.signalling.registrar import Registrar
from duologue.agent.transports.sip.signalling.session_timer import TooSmall, agree
from duologue.agent.transports.sip.signalling.transaction_layer import (
    ClientTransaction,
    Clock,
    Full,
    ServerTransaction,
    TransactionLayer,
)
from duologue.agent.transports.sip.signalling.wire import (
    MAGIC_COOKIE,
    Hop,
    Malformed,
    cseq_of,
    encode,
    listed,
    media_type,
    new_token,
    read_message,
    reply,
    reply_hop,
    stamp,
    tag_of,
)
from duologue.metrics import DROPS

_IN_DIALOG_ONLY = ("BYE", "INFO", "UPDATE", "NOTIFY", "PRACK")
_KNOWN = ("SUBSCRIBE", "MESSAGE", "PUBLISH", "REFER", *_IN_DIALOG_ONLY)
MAX_AUTH_TRIES = 3

_log = EventLog(__name__)


class Network(Protocol):
    """What the endpoint needs of the sockets."""

    def send(self, data: bytes, hop: Hop) -> None:
        """Send, as soon as there is a connection; losses are reported by ``Endpoint.unreachable``, if at all."""

    def is_connected(self, hop: Hop) -> bool:
        """Whether a stream connection to this hop is open."""


@dataclass(frozen=True)
class Local:
    """One of our listeners, as peers are told."""

    transport: TransportName
    host: str
    """IPv6 in brackets."""
    port: int


OnResponse = Callable[[Response, Request], None]


class Observer(Protocol):
    """Whom the endpoint tells what becomes of legs."""

    def on_invite(self, leg: IncomingLeg) -> None:
        """A call came in; it is answered 100 so far."""

    def on_leg_answered(self, leg: Leg) -> None:
        """A call was answered, by us or by the other end."""

    def on_leg_ended(self, leg: Leg) -> None:
        """A call ended."""


class Endpoint:
    """One user agent."""

    def __init__(self, config: SipConfig, clock: Clock, network: Network, locals_: Sequence[Local],
                 observer: Observer) -> None:
        self.config = config
        self.clock = clock
        self.network = network
        self.log = _log
        self.locals = tuple(locals_)
        self.draining = False
        limits = config.limits
        self.layer = TransactionLayer(clock, self._send, self._on_request, limits.transactions, limits.retry_after_s)
        self.registrar = Registrar(clock, limits)
        self.legs: set[Leg] = set()
        """Calls that have not ended."""
        self._dialogs: dict[DialogId, Leg] = {}
        self._ids: dict[Leg, DialogId] = {}
        self._observer = observer
        self._authenticator = Authenticator(
            {user.name: user.password.get_secret_value() for user in config.users}, config.realm, clock.time,
            config.nonce_lifetime_s, offered=config.digest)

    # --- what comes ----------------------------------------------------------------------------------------

    def receive(self, data: bytes, source: Hop) -> None:
        """Take one message as it came. Nothing that anybody sends raises."""
        if not data.strip(b"\r\n\0 "):
            return  # keep-alive
        try:
            message = read_message(data)
        except Malformed as error:
            DROPS.labels(what="sip_message", reason="malformed").inc()
            if error.request is not None:
                stamp(error.request, source)
                self._send(reply(error.request, error.status, str(error), to_tag=new_token()),
                           reply_hop(error.request, source))
            return
        if isinstance(message, Request):
            stamp(message, source)
        self.layer.receive(message, source)

    def unreachable(self, hop: Hop) -> None:
        """A connection failed."""
        self.layer.unreachable(hop)

    def _on_request(self, request: Request, transaction: ServerTransaction | None, source: Hop) -> None:
        dialog_id = (request.call_id, tag_of(request, "To"), tag_of(request, "From"))
        leg = self._dialogs.get(dialog_id)
        if transaction is None:
            if leg is not None:
                leg.receive_ack(request)
                self._tidy(leg)
            return
        if request.method == "CANCEL":
            self._cancel(request, transaction)
            return
        unknown = [option for option in listed(request, "Require") if option not in SUPPORTED]
        if unknown:
            self._refuse(transaction, 420, headers={"Unsupported": ", ".join(unknown)})
        elif leg is not None:
            leg.receive(transaction)
            self._tidy(leg)
        elif dialog_id[1] and request.method != "REGISTER":
            self._refuse(transaction, 481)
        elif request.method == "INVITE":
            self._invite(request, transaction, source)
        elif request.method == "OPTIONS":
            transaction.respond(self.capabilities(request))
        elif request.method == "REGISTER":
            self._register(request, transaction, source)
        elif request.method in _IN_DIALOG_ONLY:
            self._refuse(transaction, 481)
        elif request.method in _KNOWN:
            self._refuse(transaction, 405, headers={"Allow": self._allow()})
        else:
            self._refuse(transaction, 501)

    def _cancel(self, request: Request, transaction: ServerTransaction) -> None:
        invite = self.layer.invite_of(request)
        if invite is None:
            self._refuse(transaction, 481)
            return
        transaction.respond(reply(request, 200, to_tag=invite.to_tag))
        if not invite.answered:
            invite.on_cancel()

    def _invite(self, request: Request, transaction: ServerTransaction, source: Hop) -> None:
        limits, retry = self.config.limits, {"Retry-After": str(self.config.limits.retry_after_s)}
        if self.draining or len(self.legs) >= limits.calls:
            self._refuse(transaction, 503, headers=retry)
            return
        if request.uri.scheme == "tel":
            self._refuse(transaction, 416)
            return
        if request.body and (media_type(request) != "application/sdp" or request.headers.get("Content-Encoding")):
            self._refuse(transaction, 415, headers={"Accept": "application/sdp", "Accept-Encoding": "identity"})
            return
        user = ""
        if self.config.users and not self._trusted(source):
            checked = self._authenticator.check(request)
            if isinstance(checked, Challenge):
                self._challenge(transaction, checked)
                return
            user = checked
        if any(isinstance(leg, IncomingLeg) and leg.invite.call_id == request.call_id
               and tag_of(leg.invite, "From") == tag_of(request, "From") for leg in self.legs):
            self._refuse(transaction, 482)  # section 8.2.2.2: the same INVITE by another way
            return
        try:
            agreed = agree(request, self.config.session_timers)
        except TooSmall:
            self._refuse(transaction, 422, headers={"Min-SE": str(self.config.session_timers.min_s)})
            return
        except ValueError as error:
            self._refuse(transaction, 400, str(error))
            return
        leg = IncomingLeg(self, transaction, source, agreed, user)
        leg.peer_allows = set(listed(request, "Allow"))
        self.legs.add(leg)
        self.remember(leg)
        self._observer.on_invite(leg)

    def _register(self, request: Request, transaction: ServerTransaction, source: Hop) -> None:
        if not self.config.users:
            self._refuse(transaction, 405, headers={"Allow": self._allow()})
            return
        checked = self._authenticator.check(request)
        if isinstance(checked, Challenge):
            self._challenge(transaction, checked)
            return
        try:
            response = self.registrar.register(request, checked, source)
        except ValueError as error:
            response = reply(request, 400, str(error))
        transaction.respond(response)

    def _challenge(self, transaction: ServerTransaction, challenge: Challenge) -> None:
        response = reply(transaction.request, 401, to_tag=transaction.to_tag)
        response.headers.setlist("WWW-Authenticate", list(challenge.values))
        transaction.respond(response)

    def _refuse(self, transaction: ServerTransaction, status: int, text: str = "", *,
                headers: dict[str, str] | None = None) -> None:
        transaction.respond(reply(transaction.request, status, text, to_tag=transaction.to_tag, headers=headers))

    def _trusted(self, source: Hop) -> bool:
        address = ip_address(source.host.partition("%")[0])
        return any(address in network for network in self.config.trusted)

    def capabilities(self, request: Request) -> Response:
        """Answer OPTIONS (section 11.2)."""
        headers = {"Allow": self._allow(), "Accept": "application/sdp", "Accept-Encoding": "identity",
                   "Accept-Language": "en", "Supported": ", ".join(SUPPORTED)}
        if self.draining:
            headers["Retry-After"] = str(self.config.limits.retry_after_s)
        return reply(request, 503 if self.draining else 200, to_tag=new_token(), headers=headers)

    def _allow(self) -> str:
        return f"{ALLOW}, REGISTER" if self.config.users else ALLOW

    # --- what goes out -------------------------------------------------------------------------------------

    def ask(self, build: Callable[[], Request], hop: Hop, on_response: OnResponse,
            digest: DigestClient | None = None, on_sent: Callable[[ClientTransaction], None] | None = None,
            still: Callable[[], bool] = lambda: True, tries: int = MAX_AUTH_TRIES) -> None:
        """Send what ``build`` makes, with our Via; a challenge is met by building and sending it again.

        ``on_sent`` is given the transaction of each try. ``still`` says whether another try is wanted. ``on_response``
        hears of every response but the challenges that are met, with the request it answers.
        """
        request = build()

        def responded(response: Response) -> None:
            if response.code in (401, 407) and digest is not None and tries > 1 and still():
                try:
                    name, value = digest.answer(response, request.method, str(request.uri))
                except Unauthorized as why:
                    self.log.warning("sip_not_authorized", why=str(why))
                else:
                    self.ask(lambda: _with(build(), name, value), hop, on_response, digest, on_sent, still, tries - 1)
                    return
            elif response.code >= 200 and digest is not None:
                digest.accepted()
            on_response(response, request)

        self._via(request, hop)
        try:
            client = self.layer.request(request, hop, responded)
        except Full:
            refusal = reply(request, 503, "Too Many Transactions")
            self.clock.call_at(self.clock.time(), lambda: on_response(refusal, request))
            return
        if on_sent is not None:
            on_sent(client)

    def acknowledge(self, dialog: Dialog, invite: Request) -> None:
        """Send the ACK of a 2xx: of no transaction, with the INVITE's credentials (sections 13.2.2.4 and 22.1)."""
        ack = dialog.request("ACK", cseq=cseq_of(invite).sequence)
        for name in ("Authorization", "Proxy-Authorization"):
            if invite.headers.get(name):
                ack.headers.setlist(name, list(invite.headers.getlist(name)))
        hop = self.hop_of(dialog)
        self._via(ack, hop)
        self._send(ack, hop)

    def send_as_is(self, request: Request, hop: Hop) -> None:
        """Send a request that has its Via (a CANCEL) and forget it."""
        try:
            self.layer.request(request, hop, lambda _response: None)
        except Full:
            DROPS.labels(what="sip_message", reason="full").inc()

    def hang_up_fork(self, dialog: Dialog, digest: DigestClient | None) -> None:
        """End a dialog that is no call of ours."""
        self.ask(lambda: dialog.request("BYE"), self.hop_of(dialog), lambda _response, _request: None, digest)

    def hop_of(self, dialog: Dialog) -> Hop:
        """Where a dialog's requests go. An open connection that it came by is used again: the other end may not be
        reachable by another (NAT), and a phone's Contact on TCP often names a port where nobody listens.
        """
        source = dialog.source
        try:
            hop = self.local_of(hop_to(dialog.next_hop(), fallback=source.transport))
        except ValueError:
            return source  # a Contact that we have no transport for
        if source.reliable and hop.transport == source.transport and self.network.is_connected(source) and (
                not dialog.route_set or hop.host == source.host):
            return source
        if not dialog.route_set and _is_public(source.host) and not _is_public(hop.host):
            return source  # a phone behind NAT names its address at home
        return replace(hop, local=source.local) if hop.transport == source.transport else hop

    def local_of(self, hop: Hop) -> Hop:
        """Choose the listener that a hop goes by. Raises ``BadTarget``."""
        for index, local in enumerate(self.locals):
            if local.transport == hop.transport:
                return replace(hop, local=index)
        raise BadTarget(f"nothing listens with {hop.transport}: add it to 'listen' to call there")

    def contact(self, hop: Hop, user: str = "duologue") -> str:
        """Our Contact for what goes by ``hop``."""
        local = self.locals[hop.local]
        return f"<{contact_uri(user, local.host, local.port, local.transport)}>"

    def _via(self, request: Request, hop: Hop) -> None:
        local = self.locals[hop.local]
        request.headers.setlist("Via", [f"SIP/2.0/{local.transport.upper()} {local.host}:{local.port}"
                                        f";branch={MAGIC_COOKIE}{new_token()};rport"])

    def _send(self, message: Request | Response, hop: Hop) -> None:
        self.network.send(encode(message), hop)

    # --- legs ----------------------------------------------------------------------------------------------

    def remember(self, leg: Leg) -> None:
        """Requests of this leg's dialog are its own from now on."""
        self._dialogs[leg.dialog.id] = leg
        self._ids[leg] = leg.dialog.id

    def forget(self, leg: Leg) -> None:
        """The leg's dialog is over; nothing if there never was one."""
        dialog_id = self._ids.pop(leg, None)
        if dialog_id is not None:
            self._dialogs.pop(dialog_id, None)

    def leg_answered(self, leg: Leg) -> None:
        """A leg was answered."""
        self._observer.on_leg_answered(leg)

    def leg_ended(self, leg: Leg) -> None:
        """A leg ended."""
        self.legs.discard(leg)
        self._tidy(leg)
        self._observer.on_leg_ended(leg)

    def _tidy(self, leg: Leg) -> None:
        if leg.over:
            self.forget(leg)

    def caller_of(self, local: Local) -> URI:
        """Whom calls out come from where there is no provider."""
        return URI(scheme="sip", user="duologue", host=local.host)


def _is_public(host: str) -> bool:
    """Whether a host may be reached from anywhere; a name is taken at its word."""
    try:
        return ip_address(host).is_global
    except ValueError:
        return True


def _with(request: Request, name: str, value: str) -> Request:
    request.headers.set(name, value)
    return request
