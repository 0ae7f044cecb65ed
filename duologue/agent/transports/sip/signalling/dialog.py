"""A dialog (RFC 3261 section 12): who talks to whom, in which order, by which way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from sipmessage import URI, CSeq, Parameters, Request, Response

from duologue.agent.transports.sip.config import DEFAULT_PORTS, TransportName
from duologue.agent.transports.sip.signalling.grammar import read_address, split_list
from duologue.agent.transports.sip.signalling.wire import Hop, cseq_of, tag_of

DialogId = tuple[str, str, str]
"""Call-ID, our tag, the other end's tag."""

MAX_FORWARDS = 70
"""RFC 3261 section 8.1.1.6."""


@dataclass
class Dialog:
    """The state that both ends share."""

    call_id: str
    local: str
    """Our From (or To) value, with its tag."""
    remote: str
    """The other end's, with its tag if it has one."""
    local_tag: str
    remote_tag: str
    target: URI
    """The other end's Contact."""
    source: Hop
    """The hop that the dialog came up by."""
    route_set: list[str] = field(default_factory=list)
    local_cseq: int = 0
    remote_cseq: int | None = None

    @property
    def id(self) -> DialogId:
        """What in-dialog requests are matched by."""
        return self.call_id, self.local_tag, self.remote_tag

    @classmethod
    def of_server(cls, invite: Request, local_tag: str, source: Hop) -> Dialog:
        """The dialog that our response to an INVITE makes (section 12.1.1)."""
        return cls(call_id=invite.call_id, local=f"{invite.headers['To']};tag={local_tag}",
                   remote=invite.headers["From"], local_tag=local_tag, remote_tag=tag_of(invite, "From"),
                   target=read_address(split_list(invite.headers.getlist("Contact"))[0]).uri, source=source,
                   route_set=split_list(invite.headers.getlist("Record-Route")),
                   remote_cseq=cseq_of(invite).sequence)

    @classmethod
    def of_client(cls, invite: Request, response: Response, hop: Hop) -> Dialog:
        """The dialog that a response to our INVITE makes (section 12.1.2). Raises ``ValueError`` without a Contact."""
        contacts = split_list(response.headers.getlist("Contact"))
        if not contacts:
            raise ValueError("a response that makes a dialog has no Contact")
        routes = split_list(response.headers.getlist("Record-Route"))
        for route in routes:
            read_address(route)
        return cls(call_id=invite.call_id, local=invite.headers["From"], remote=response.headers["To"],
                   local_tag=tag_of(invite, "From"), remote_tag=tag_of(response, "To"),
                   target=read_address(contacts[0]).uri, source=hop, route_set=routes[::-1],
                   local_cseq=cseq_of(invite).sequence)

    def request(self, method: str, *, cseq: int | None = None) -> Request:
        """Make a request within the dialog (section 12.2.1.1), without its Via and Contact.

        ``cseq`` is given for an ACK (its INVITE's) and only then.
        """
        if cseq is None:
            self.local_cseq += 1
            cseq = self.local_cseq
        uri, routes = self.target, list(self.route_set)
        if routes and "lr" not in read_address(routes[0]).parameters.keys() | read_address(
                routes[0]).uri.parameters.keys():
            uri = read_address(routes.pop(0)).uri  # a strict router of RFC 2543
            routes.append(f"<{self.target}>")
        request = Request(method, uri)
        if routes:
            request.headers.setlist("Route", routes)
        request.headers.set("Max-Forwards", str(MAX_FORWARDS))
        request.headers.set("From", self.local)
        request.headers.set("To", self.remote)
        request.call_id = self.call_id
        request.cseq = CSeq(sequence=cseq, method=method)
        return request

    def next_hop(self) -> URI:
        """Where requests of the dialog are sent (section 8.1.2)."""
        return read_address(self.route_set[0]).uri if self.route_set else self.target

    def in_order(self, request: Request) -> bool:
        """Note a request's number; False for one older than what was seen (section 12.2.2: answered 500)."""
        number = cseq_of(request).sequence
        if self.remote_cseq is not None and number < self.remote_cseq:
            return False
        self.remote_cseq = number
        return True

    def refresh_target(self, message: Request | Response) -> None:
        """Take the new Contact of a re-INVITE or UPDATE, or of its 2xx; one that cannot be read changes nothing."""
        with suppress(ValueError):
            contacts = split_list(message.headers.getlist("Contact"))
            if len(contacts) == 1:
                self.target = read_address(contacts[0]).uri


def hop_to(uri: URI, fallback: TransportName = "udp") -> Hop:
    """Where a URI says that requests go: ``transport``, ``maddr``, the port, or the defaults (RFC 3263 without NAPTR
    and SRV). Raises ``ValueError`` for a transport that we do not have.
    """
    named = (uri.parameters.get("transport") or "").lower()
    if named not in ("", "udp", "tcp", "tls"):
        raise ValueError(f"there is no transport {named!r} here")
    transport: TransportName = "tls" if uri.scheme == "sips" or named == "tls" else (
        "tcp" if named == "tcp" else "udp" if named == "udp" else fallback)
    host = (uri.parameters.get("maddr") or uri.host).strip("[]")
    return Hop(transport, host, uri.port or DEFAULT_PORTS[transport])


def contact_uri(user: str, host: str, port: int, transport: TransportName) -> URI:
    """Our own Contact."""
    parameters = Parameters() if transport == "udp" else Parameters(transport=transport)
    return URI(scheme="sip", user=user or None, host=host, port=port, parameters=parameters)
