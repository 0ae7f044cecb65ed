"""SIP messages between bytes and objects: reading with limits, the essentials of a header, replies, Via stamps."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from sipmessage import URI, CSeq, Message, Request, Response, Via
from sipmessage.message import COMPACT_FORMS

from duologue.agent.transports.sip.config import DEFAULT_PORTS, TransportName
from duologue.agent.transports.sip.signalling.grammar import (
    is_token,
    read_address,
    read_cseq,
    read_uri,
    read_via,
    split_list,
)

MAGIC_COOKIE = "z9hG4bK"
"""RFC 3261 section 8.1.1.7: a branch that begins so is unique."""

MAX_HEADER_LINES = 200

USER_AGENT = "Duologue"

PHRASES = {
    100: "Trying", 180: "Ringing", 183: "Session Progress", 200: "OK", 202: "Accepted", 400: "Bad Request",
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    415: "Unsupported Media Type", 416: "Unsupported URI Scheme", 420: "Bad Extension",
    422: "Session Interval Too Small", 423: "Interval Too Brief", 480: "Temporarily Unavailable",
    481: "Call/Transaction Does Not Exist", 482: "Loop Detected", 486: "Busy Here", 487: "Request Terminated",
    488: "Not Acceptable Here", 489: "Bad Event", 491: "Request Pending", 500: "Server Internal Error",
    501: "Not Implemented", 503: "Service Unavailable", 505: "Version Not Supported", 513: "Message Too Large",
    600: "Busy Everywhere", 603: "Decline",
}


@dataclass(frozen=True)
class Hop:
    """Where a message goes to or came from."""

    transport: TransportName
    host: str
    """Numeric address without brackets, or a name."""
    port: int
    local: int = 0
    """Index of our listener that it goes by."""

    @property
    def reliable(self) -> bool:
        """Whether the transport itself retransmits."""
        return self.transport != "udp"


class Malformed(ValueError):  # noqa: N818 - the RFC's word
    """A message that cannot be used. If ``request`` is there, ``status`` can be sent back for it."""

    def __init__(self, why: str, status: int = 400, request: Request | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.request = request


def read_message(data: bytes) -> Request | Response:
    """Read one message with its whole body. Raises ``Malformed``.

    What is returned has one readable CSeq, From, To and Call-ID, and a readable top Via; the body is as long as
    Content-Length says.
    """
    head, blank, body = data.partition(b"\r\n\r\n")
    if not blank:
        raise Malformed("the header does not end")
    try:
        lines = re.sub(r"\r\n[ \t]+", " ", head.decode()).split("\r\n")  # RFC 3261 section 7.3.1: folded lines
    except UnicodeDecodeError:
        raise Malformed("the header is not UTF-8") from None
    if len(lines) > MAX_HEADER_LINES or any(re.search(r"[\x00-\x08\x0a-\x1f\x7f]", line) for line in lines):
        raise Malformed("the header has too many lines or control characters")
    message, fault = _start_line(lines[0])
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        name = name.rstrip(" \t")
        if not colon or not is_token(name):
            raise Malformed("a header line has no name")
        message.headers.add(COMPACT_FORMS.get(name.lower(), name), value.strip())
    request = message if isinstance(message, Request) and _answerable(message) else None
    if fault is not None:
        raise Malformed(str(fault), fault.status, request)
    try:
        _check(message)
        message.body = _body(message, body)
    except (ValueError, KeyError) as error:
        raise Malformed(f"{error}", request=request) from None
    return message


def _start_line(line: str) -> tuple[Request | Response, Malformed | None]:
    first, _, rest = line.partition(" ")
    if first == "SIP/2.0":
        code, _, phrase = rest.partition(" ")
        if not re.fullmatch(r"[1-6]\d\d", code):
            raise Malformed("the status is no number from 100 to 699")
        return Response(int(code), phrase), None
    target, _, version = rest.rpartition(" ")
    if not is_token(first) or not target:
        raise Malformed("the first line is neither a request nor a status")
    nowhere = URI(scheme="sip", host="invalid")
    if version.upper() != "SIP/2.0":
        status = 505 if re.fullmatch(r"SIP/\d+\.\d+", version, re.IGNORECASE) else 400
        return Request(first, nowhere), Malformed("the version is not SIP/2.0", status)
    try:
        return Request(first, read_uri(target)), None
    except ValueError as error:
        foreign = re.match(r"(?!sips?:|tel:)[A-Za-z][A-Za-z0-9+.\-]*:", target, re.IGNORECASE)
        return Request(first, nowhere), Malformed(str(error), 416 if foreign else 400)


def _answerable(request: Request) -> bool:
    """Whether a reply would find its way back and be matched."""
    try:
        top_via(request)
    except (ValueError, IndexError):
        return False
    return request.method != "ACK" and all(request.headers.get(name) for name in ("From", "To", "Call-ID", "CSeq"))


def _check(message: Request | Response) -> None:
    headers = message.headers
    for name in ("From", "To", "Call-ID", "CSeq"):
        if len(headers.getlist(name)) != 1 or not headers[name]:
            raise ValueError(f"there must be one {name}")
    if not headers.getlist("Via"):
        raise ValueError("there must be a Via")
    for value in split_list(headers.getlist("Via")):
        read_via(value)
    if not re.fullmatch(r"\d{1,3}", headers.get("Max-Forwards") or "0"):
        raise ValueError("Max-Forwards is no number up to 255")
    cseq = read_cseq(headers["CSeq"])
    if isinstance(message, Request):
        if cseq.method != message.method:
            raise ValueError("CSeq names another method")
        if not read_address(headers["From"]).parameters.get("tag"):
            raise ValueError("From has no tag")
        for name in ("Route", "Record-Route"):
            for value in split_list(headers.getlist(name)):
                read_address(value)
        if message.method == "INVITE" and len(split_list(headers.getlist("Contact"))) != 1:
            raise ValueError("an INVITE must have one Contact")
        contacts = split_list(headers.getlist("Contact"))
        if contacts != ["*"] or message.method != "REGISTER":
            for value in contacts:
                read_address(value)
    else:
        read_address(headers["From"])
    read_address(headers["To"])


def _body(message: Request | Response, body: bytes) -> bytes:
    lengths = message.headers.getlist("Content-Length")
    if not lengths:
        return body
    if len(set(lengths)) != 1 or not re.fullmatch(r"\d{1,9}", lengths[0]):
        raise ValueError("Content-Length is no number")
    length = int(lengths[0])
    if length > len(body):
        raise ValueError("the body is shorter than Content-Length says")
    return body[:length]  # RFC 3261 section 18.3: what is over in a datagram is dropped


def top_via(message: Message) -> Via:
    """The first Via."""
    return read_via(split_list(message.headers.getlist("Via")[:1])[0])


def cseq_of(message: Message) -> CSeq:
    """The CSeq."""
    return read_cseq(message.headers["CSeq"])


def tag_of(message: Message, header: str) -> str:
    """The tag of ``From`` or ``To``; empty if there is none."""
    return read_address(message.headers[header]).parameters.get("tag") or ""


def listed(message: Message, header: str) -> list[str]:
    """The elements of a header that holds tokens, such as Require, Supported or Allow."""
    return [token.strip() for value in message.headers.getlist(header) for token in value.split(",") if token.strip()]


def media_type(message: Message) -> str:
    """The Content-Type in lower case without parameters; empty if there is none."""
    return (message.headers.get("Content-Type") or "").partition(";")[0].strip().lower()


def sdp_of(message: Message) -> str | None:
    """The SDP that a message carries; None if it carries none."""
    if media_type(message) != "application/sdp" or not message.body:
        return None
    return message.body.decode(errors="replace")


def seconds_in(message: Message, header: str) -> int | None:
    """The whole number that a header begins with; None if there is none."""
    found = re.match(r"[ \t]*([0-9]{1,9})(?![0-9])", message.headers.get(header) or "")
    return int(found[1]) if found is not None else None


def new_token() -> str:
    """A tag, branch or Call-ID that nobody can guess (RFC 3261 section 19.3: at least 32 random bits)."""
    return secrets.token_hex(8)


def plain(text: str) -> str:
    """Text that is safe in a header line."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", text).strip()[:200]


def reply(request: Request, code: int, phrase: str = "", *, to_tag: str = "",
          headers: Mapping[str, str] | None = None, sdp: str | None = None) -> Response:
    """Make the response to a request (RFC 3261 section 8.2.6)."""
    response = Response(code, plain(phrase) or PHRASES.get(code, "Unknown"))
    for name in ("Via", "From", "To", "Call-ID", "CSeq"):
        response.headers.setlist(name, list(request.headers.getlist(name)))
    if 100 < code < 300 and request.method == "INVITE" and request.headers.getlist("Record-Route"):
        response.headers.setlist("Record-Route", list(request.headers.getlist("Record-Route")))
    if to_tag and ";tag=" not in response.headers["To"].lower():
        response.headers.set("To", f"{response.headers['To']};tag={to_tag}")
    for name, value in (headers or {}).items():
        response.headers.set(name, value)
    set_sdp(response, sdp)
    return response


def set_sdp(message: Request | Response, sdp: str | None) -> None:
    """Give a message its SDP body, or none."""
    message.body = (sdp or "").encode()
    if sdp:
        message.headers.set("Content-Type", "application/sdp")


def encode(message: Request | Response) -> bytes:
    """Write a message, with its Content-Length and our name."""
    message.headers.set("User-Agent" if isinstance(message, Request) else "Server", USER_AGENT)
    message.headers.set("Content-Length", str(len(message.body)))
    return bytes(message)


def stamp(request: Request, source: Hop) -> None:
    """Note in the top Via where a request really came from (RFC 3261 section 18.2.1, RFC 3581)."""
    first, *others = split_list(request.headers.getlist("Via"))
    via = read_via(first)
    value = re.sub(r";\s*received\s*=[^;]*", "", first, flags=re.IGNORECASE)
    if "rport" in via.parameters:
        value = re.sub(r";\s*rport\b[^;]*", f";rport={source.port}", value, flags=re.IGNORECASE)
    if "rport" in via.parameters or via.host.strip("[]") != source.host:
        value += f";received={source.host}"
    request.headers.setlist("Via", [value, *others])


def reply_hop(request: Request, source: Hop) -> Hop:
    """Where a response goes (RFC 3261 section 18.2.2, RFC 3581 section 4)."""
    if source.reliable:
        return source
    via = top_via(request)
    port = source.port if "rport" in via.parameters else via.port or DEFAULT_PORTS[source.transport]
    return Hop(source.transport, source.host, port, source.local)
