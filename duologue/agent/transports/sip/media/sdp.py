"""SDP (RFC 8866) as telephones write it: text to sections and back, nothing about what is in them.

Lenient in what it reads (bare line feeds, unknown lines and attributes), strict in what it writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address

MAX_BYTES = 32 * 1024
"""A description longer than this is not one; real ones have about 1 kB."""

MAX_SECTIONS = 16
"""Media sections a description may have; telephones send up to three."""

_TOKEN = re.compile(r"[!#-'*+.0-9A-Z^-~-]+")  # RFC 8866 section 9, "token"


class BadSdp(ValueError):  # noqa: N818 - what it is
    """The text is not a session description; says which line is wrong."""


@dataclass(frozen=True, slots=True)
class Section:
    """One ``m=`` section. ``port`` 0 means that it is refused or disabled (RFC 3264 section 6)."""

    kind: str
    port: int
    protocol: str
    formats: tuple[str, ...]
    address: str
    """Of its own ``c=`` line or the session's; empty if there is neither."""
    attributes: tuple[tuple[str, str], ...] = ()
    """Name and value (empty for a flag), in order; ``a=`` lines of the session that hold for it follow its own."""

    def values(self, name: str) -> list[str]:
        """Values of all attributes of one name, in order."""
        return [value for key, value in self.attributes if key == name]

    def value(self, name: str) -> str | None:
        """The first value of an attribute; None if it is not there."""
        return next((value for key, value in self.attributes if key == name), None)

    def has(self, name: str) -> bool:
        """Whether there is such an attribute."""
        return any(key == name for key, _ in self.attributes)


@dataclass(frozen=True, slots=True)
class Description:
    """A session description."""

    session_id: int
    version: int
    address: str
    """Host of the origin."""
    sections: tuple[Section, ...]
    time: str = "0 0"
    """The ``t=`` line, which an answer copies (RFC 3264 section 6)."""


@dataclass(slots=True)
class _Open:
    """A section while it is being read."""

    kind: str
    port: int
    protocol: str
    formats: tuple[str, ...]
    address: str = ""
    attributes: list[tuple[str, str]] = field(default_factory=list)


def read_sdp(text: str) -> Description:
    """Read a description; raises :class:`BadSdp`."""
    if len(text) > MAX_BYTES:
        raise BadSdp(f"longer than {MAX_BYTES} characters")
    origin = (0, 0, "")
    time = "0 0"
    session_address = ""
    session_attributes: list[tuple[str, str]] = []
    sections: list[_Open] = []
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    if not lines or lines[0].strip() != "v=0":
        raise BadSdp("does not begin with v=0")
    for line in lines[1:]:
        kind, equals, value = line.partition("=")
        value = value.strip()
        if len(kind) != 1 or not equals:
            raise BadSdp(f"not a line of SDP: {line[:60]!r}")
        if kind == "m":
            if len(sections) == MAX_SECTIONS:
                raise BadSdp(f"more than {MAX_SECTIONS} media sections")
            sections.append(_media(value))
        elif kind == "c":
            address = _connection(value)
            if sections:
                sections[-1].address = address
            else:
                session_address = address
        elif kind == "a":
            name, _, argument = value.partition(":")
            (sections[-1].attributes if sections else session_attributes).append((name, argument.strip()))
        elif kind == "o" and not sections:
            origin = _origin(value)
        elif kind == "t" and not sections and re.fullmatch(r"\d+ \d+", value):
            time = value
    return Description(*origin, tuple(
        Section(each.kind, each.port, each.protocol, each.formats, each.address or session_address,
                (*each.attributes, *session_attributes)) for each in sections), time)


def write_sdp(description: Description) -> str:
    """Write a description, every section with its own ``c=`` line; lines end with CRLF."""
    lines = ["v=0",
             f"o=- {description.session_id} {description.version} {_in(description.address)}",
             "s=-",
             f"c={_in(description.address)}",
             f"t={description.time}"]
    for section in description.sections:
        lines.append(f"m={section.kind} {section.port} {section.protocol} {' '.join(section.formats)}")
        if section.address and section.address != description.address:
            lines.append(f"c={_in(section.address)}")
        lines += [f"a={name}:{value}" if value else f"a={name}" for name, value in section.attributes]
    return "\r\n".join(lines) + "\r\n"


def _media(value: str) -> _Open:
    words = value.split()
    port = words[1].partition("/")[0] if len(words) > 3 else ""
    if not re.fullmatch(r"\d{1,5}", port) or int(port) > 65_535:
        raise BadSdp(f"not a media line: {value[:60]!r}")
    if not all(_TOKEN.fullmatch(word) for word in (words[0], *words[3:])):
        raise BadSdp(f"not a media line: {value[:60]!r}")
    return _Open(words[0], int(port), words[2], tuple(words[3:]))


def _connection(value: str) -> str:
    words = value.split()
    if len(words) != 3 or words[0] != "IN" or words[1] not in ("IP4", "IP6"):
        raise BadSdp(f"not a connection line: {value[:60]!r}")
    return words[2].partition("/")[0]


def _origin(value: str) -> tuple[int, int, str]:
    words = value.split()
    if len(words) != 6 or not all(re.fullmatch(r"\d{1,20}", word) for word in words[1:3]):
        raise BadSdp(f"not an origin line: {value[:60]!r}")
    return int(words[1]), int(words[2]), words[5]


def _in(host: str) -> str:
    try:
        return f"IN IP{ip_address(host).version} {host}"
    except ValueError:
        return f"IN IP4 {host}"  # a host name
