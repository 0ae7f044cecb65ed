"""Reads SIP header values into ``sipmessage``'s types, in linear time.

``sipmessage`` 0.7.1 reads them too, but refuses host names whose last label holds a digit (``pbx1``) or an underscore,
splits at semicolons and commas inside quoted strings, and takes exponential time for a hostile Authorization header,
which comes before anybody is authenticated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from sipmessage import URI, Address, CSeq, Parameters, Via

TOKEN = r"[A-Za-z0-9\-.!%*_+`'~]+"
_TOKEN = re.compile(TOKEN)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.\-]*[A-Za-z0-9_.])?|\[[0-9A-Fa-f:.]+\]")
_HOST_PORT = re.compile(rf"\s*(?P<host>{_HOST.pattern})\s*(?::\s*(?P<port>\d{{1,5}}))?\s*")
_VIA = re.compile(rf"\s*SIP\s*/\s*2\.0\s*/\s*(?P<transport>{TOKEN})\s+(?P<rest>.+)", re.IGNORECASE)
_CSEQ = re.compile(rf"(?P<number>\d{{1,10}})\s+(?P<method>{TOKEN})")
_USER = re.compile(r"[A-Za-z0-9\-_.!~*'()&=+$,;?/%#]+")
_AUTH_PARAM = re.compile(rf'[\s,]*(?P<name>{TOKEN})\s*=\s*'
                         r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"]+))\s*(?=,|$)')

CSEQ_LIMIT = 2 ** 31
"""RFC 3261 section 8.1.1.5: sequence numbers are less than 2**31."""


def split_outside(text: str, separator: str) -> list[str]:
    """Split at a separator that stands neither in a quoted string nor in angle brackets; parts are stripped."""
    if '"' not in text and "<" not in text:
        return [part.strip() for part in text.split(separator)]
    parts, start, quoted, angled, skip = [], 0, False, False, False
    for index, char in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char == "<":
            angled = True
        elif char == ">":
            angled = False
        elif char == separator and not angled:
            parts.append(text[start:index].strip())
            start = index + 1
    if quoted or angled:
        raise ValueError("a quoted string or an angle bracket is not closed")
    parts.append(text[start:].strip())
    return parts


def split_list(values: Iterable[str]) -> list[str]:
    """Give each element of a header that may stand on several lines and hold commas."""
    return [part for value in values for part in split_outside(value, ",") if part]


def read_parameters(parts: Iterable[str]) -> Parameters:
    """Read ``name=value`` parts; names become lower case, quotes and escapes of values are resolved."""
    found: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name:
            raise ValueError("a parameter has no name")
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        found[unquote(name).lower()] = unquote(value) if equals else None
    found.pop("self", None)  # Parameters cannot hold a parameter of this name
    return Parameters(**found)


def read_uri(text: str) -> URI:
    """Read a SIP, SIPS or TEL URI; headers after ``?`` are dropped. Raises ``ValueError``."""
    scheme, colon, rest = text.strip().partition(":")
    scheme = scheme.lower()
    if not colon or scheme not in ("sip", "sips", "tel"):
        raise ValueError("not a sip:, sips: or tel: URI")
    if scheme == "tel":
        number, *parameters = rest.split(";")
        if not re.fullmatch(r"\+?[0-9A-Fa-f*#\-.()]+", number):
            raise ValueError("not a telephone number")
        return URI(scheme="tel", host="", user=number, parameters=read_parameters(parameters))
    user, at, rest = rest.rpartition("@")
    where, *parameters = rest.partition("?")[0].split(";")
    place = _HOST_PORT.fullmatch(where)
    if place is None or (at and not _USER.match(user)):
        raise ValueError("a URI's host or user cannot be read")
    name, colon, password = user.partition(":")
    if not _USER.fullmatch(name or "-") or any(char in password for char in ' <>"@'):
        raise ValueError("a URI's user cannot be read")
    return URI(scheme=scheme, host=place["host"], port=_port(place["port"]), user=unquote(name) if at else None,
               password=unquote(password) if colon else None, parameters=read_parameters(parameters))


def read_address(text: str) -> Address:
    """Read a From, To, Contact, Route or Refer-To value. Raises ``ValueError``."""
    address, *parameters = split_outside(text, ";")
    if "<" not in address:
        return Address(uri=read_uri(address), parameters=read_parameters(parameters))
    name, _, rest = address.rpartition("<") if not address.startswith('"') else _after_quoted(address)
    uri, closing, garbage = rest.partition(">")
    if not closing or garbage.strip():
        raise ValueError("an address is not closed")
    return Address(uri=read_uri(uri), name=name.strip(), parameters=read_parameters(parameters))


def read_via(text: str) -> Via:
    """Read one Via value. Raises ``ValueError``."""
    found = _VIA.fullmatch(text)
    if found is None:
        raise ValueError("Via is not SIP/2.0")
    where, *parameters = split_outside(found["rest"], ";")
    place = _HOST_PORT.fullmatch(where)
    if place is None:
        raise ValueError("Via has no host")
    return Via(transport=found["transport"].upper(), host=place["host"], port=_port(place["port"]),
               parameters=read_parameters(parameters))


def read_cseq(text: str) -> CSeq:
    """Read a CSeq value. Raises ``ValueError``."""
    found = _CSEQ.fullmatch(text.strip())
    if found is None or int(found["number"]) >= CSEQ_LIMIT:
        raise ValueError("CSeq is no number below 2**31 and a method")
    return CSeq(sequence=int(found["number"]), method=found["method"])


def read_auth(text: str) -> tuple[str, dict[str, str]]:
    """Read a challenge or credentials: the scheme in lower case and its parameters. Raises ``ValueError``."""
    scheme, _, rest = text.strip().partition(" ")
    found: dict[str, str] = {}
    position = 0
    while match := _AUTH_PARAM.match(rest, position):
        value = match["plain"] if match["quoted"] is None else re.sub(r"\\(.)", r"\1", match["quoted"])
        found[match["name"].lower()] = value
        position = match.end()
    if rest[position:].strip(" ,\t") or not found:
        raise ValueError("authentication parameters cannot be read")
    return scheme.lower(), found


def is_token(text: str) -> bool:
    """Whether a text is an RFC 3261 token."""
    return _TOKEN.fullmatch(text) is not None


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    port = int(text)
    if not 0 < port < 65_536:
        raise ValueError("there is no such port")
    return port


def _after_quoted(address: str) -> tuple[str, str, str]:
    match = re.match(r'"((?:[^"\\]|\\.)*)"\s*<', address)
    if match is None:
        raise ValueError("a display name is not closed")
    return re.sub(r"\\(.)", r"\1", match[1]), "<", address[match.end():]
