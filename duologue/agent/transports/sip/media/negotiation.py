"""Offer and answer for one voice stream (RFC 3264): what each side's SDP makes of the call's media.

Of an offer's audio sections the first that fits is taken, and in it the first codec that is ours, in the order of
the offer (RFC 3264 section 6.1); everything else is refused with port 0. The answer names one voice codec, so that it
cannot change from packet to packet, and beside it keys pressed (RFC 4733) and comfort noise (RFC 3389), where offered.

SRTP keys travel in the SDP (SDES, RFC 4568). They belong to secure profiles only: ``a=crypto`` under RTP/AVP is not
heeded, as that RFC says.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal

from duologue.agent.transports.base import FRAME_MS
from duologue.agent.transports.sip.media.sdp import BadSdp, Description, Section, read_sdp, write_sdp

CodecName = Literal["opus", "g722", "pcma", "pcmu"]
Secrecy = Literal["never", "accept", "require"]
"""Whether a stream may, or must, be SRTP."""

Suite = Literal["AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"]
SUITES: tuple[Suite, ...] = ("AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32")
"""RFC 4568 section 6.2, in order of preference."""

KEY_BYTES = 30
"""Master key and salt of both suites (RFC 4568 sections 6.2.1 and 6.2.2: 16 and 14 bytes)."""

NOISE_TYPE = 13
"""Static payload type of comfort noise at 8 kHz (RFC 3389 section 4)."""

_OPUS_OFFERED_AS = 111
_KEYS_OFFERED_AS = {8000: 101, 48_000: 102}
_PLAIN = ("RTP/AVP", "RTP/AVPF")
_SECURE = ("RTP/SAVP", "RTP/SAVPF")
_KEYS = "0-15"  # 0-9 * # A-D (RFC 4733 section 3.2)


@dataclass(frozen=True, slots=True)
class Codec:
    """A voice codec as RTP knows it; ``static`` is its payload type where it has one of its own (RFC 3551)."""

    name: CodecName
    encoding: str
    clock: int
    static: int | None = None
    channels: int = 1


CODECS: Mapping[CodecName, Codec] = {codec.name: codec for codec in (
    Codec("opus", "opus", 48_000, channels=2),  # RFC 7587 section 7: always 48000/2, whatever is coded
    Codec("g722", "G722", 8000, 9),  # RFC 3551 section 4.5.2: 8000 by a historical error, 16 kHz in truth
    Codec("pcma", "PCMA", 8000, 8),
    Codec("pcmu", "PCMU", 8000, 0),
)}


class NothingFits(ValueError):  # noqa: N818 - what happened
    """Offer and capabilities have nothing in common, or an answer is not one to our offer; says why."""


@dataclass(frozen=True, slots=True)
class Keys:
    """SRTP master keys with their salts, 30 bytes each."""

    suite: Suite
    ours: bytes = field(repr=False)
    theirs: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeypadFormat:
    """How keys pressed are sent: payload type and the clock that durations count in."""

    payload_type: int
    clock: int


Address = tuple[str, int]
"""Host (numeric) and port."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The other side of the stream."""

    hears: bool
    """Whether we may send; False while it holds us."""
    speaks: bool
    """Whether it sends."""
    address: Address | None = None
    """Where our RTP goes; None while it is unknown (a host name, or the hold of RFC 2543)."""
    control: Address | None = None
    """Where our RTCP goes."""
    multiplexed: bool = False
    """Whether RTCP shares RTP's port (RFC 5761)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What both sides have agreed on for the one voice stream."""

    peer: Peer
    codec: Codec
    send_type: int
    """Payload type of what we send; as the other side names it."""
    receive_type: int
    keypad: KeypadFormat | None = None
    """How we send keys pressed; None if the other side does not take them."""
    keypad_types: frozenset[int] = frozenset()
    """Payload types under which keys pressed may come."""
    noise: bool = False
    """Whether comfort noise may come, as ``NOISE_TYPE``."""
    keys: Keys | None = None
    """None for plain RTP."""
    bitrate_limit: int | None = None
    """Most bits a second that the other side wants to receive of Opus (``maxaveragebitrate``)."""


@dataclass(frozen=True, slots=True)
class LocalMedia:
    """What our side of a call can do, and where it is reached."""

    host: str
    """Numeric address that the other side sends to."""
    port: int
    """RTP; RTCP is the next one."""
    codecs: tuple[CodecName, ...] = ("opus", "g722", "pcma", "pcmu")
    """Acceptable ones; the order counts in our own offers only."""
    secrecy: Secrecy = "accept"
    offer_secure: bool = False
    """Whether an offer of ours asks for SRTP though ``secrecy`` does not require it."""


class Negotiator:
    """One call's offers and answers, from the first to the last; no I/O."""

    def __init__(self, local: LocalMedia) -> None:
        self._local = local
        self._session_id = secrets.randbits(53)  # RFC 8866 section 5.2 wants it unique, some peers a double
        self._version = 1
        self._sent: tuple[Section, ...] | None = None
        self._offered: Section | None = None
        # Kept for the whole call, so that a hold does not make either side change its keys.
        self._keys: dict[Suite, bytes] = {suite: secrets.token_bytes(KEY_BYTES) for suite in SUITES}

    def answer(self, offer: str) -> tuple[str, Agreement]:
        """Answer the other side's offer; raises :class:`NothingFits`, after which all is as it was."""
        description = _read(offer)
        reasons: list[str] = []
        for index, section in enumerate(description.sections):
            if section.kind != "audio" or section.port == 0:
                continue
            try:
                mine, agreement = self._answer_section(section)
            except NothingFits as why:
                reasons.append(str(why))
                continue
            sections = tuple(mine if each == index else _refused(other)
                             for each, other in enumerate(description.sections))
            return self._write(sections, description.time), agreement
        raise NothingFits("; ".join(reasons) or "the offer has no audio section")

    def offer(self) -> str:
        """Make an offer: the first one, or a fresh one within a call, with as many sections as before."""
        local = self._local
        secure = local.secrecy == "require" or (local.offer_secure and local.secrecy != "never")
        names = {name: CODECS[name] for name in local.codecs}
        formats = {_OPUS_OFFERED_AS if codec.static is None else codec.static: _rtpmap(codec)
                   for codec in names.values()}
        clocks = sorted({codec.clock for codec in names.values()})
        formats |= {_KEYS_OFFERED_AS[clock]: f"telephone-event/{clock}" for clock in clocks}
        if 8000 in clocks:
            formats[NOISE_TYPE] = "CN/8000"
        attributes = [("rtpmap", f"{number} {mapped}") for number, mapped in formats.items()]
        if "opus" in names:
            attributes.append(("fmtp", f"{_OPUS_OFFERED_AS} useinbandfec=1"))
        attributes += [("fmtp", f"{_KEYS_OFFERED_AS[clock]} {_KEYS}") for clock in clocks]
        if secure:
            attributes += [("crypto", f"{tag} {suite} {_inline(self._keys[suite])}")
                           for tag, suite in enumerate(SUITES, 1)]
        attributes += [("ptime", str(FRAME_MS)), ("rtcp-mux", ""), ("sendrecv", "")]
        section = Section("audio", local.port, "RTP/SAVP" if secure else "RTP/AVP", tuple(map(str, formats)),
                          local.host, tuple(attributes))
        before = self._sent or ()
        place = next((index for index, each in enumerate(before) if each.port), 0)
        sections = (*map(_refused, before[:place]), section, *map(_refused, before[place + 1:]))
        self._offered = section
        return self._write(sections, "0 0")

    def accept(self, answer: str) -> Agreement:
        """Take the answer to the last offer; raises :class:`NothingFits`."""
        offered, self._offered = self._offered, None
        if offered is None or self._sent is None:
            raise NothingFits("there is no offer that this could answer")
        description = _read(answer)
        if len(description.sections) != len(self._sent):
            raise NothingFits("the answer has not as many media sections as the offer")
        section = description.sections[self._sent.index(offered)]
        if section.kind != "audio" or section.port == 0:
            raise NothingFits("the other side refuses the audio")
        if section.protocol != offered.protocol:
            raise NothingFits(f"{section.protocol} was not offered")
        ours, theirs = _maps(offered), _maps(section)
        chosen = next(((number, codec) for number, codec in _voices(section, theirs)
                       if codec.name in self._local.codecs), None)
        if chosen is None:
            raise NothingFits("the answer has none of the codecs offered")
        send_type, codec = chosen
        receive_type = next(number for number, mapped in ours.items() if mapped == _normal(_rtpmap(codec)))
        keys = self._agreed_keys(section) if offered.protocol in _SECURE else None
        keypad = _keypad(section, theirs, codec)
        return Agreement(
            _peer(section), codec, send_type, receive_type, keypad=keypad, keys=keys,
            # The offerer may be sent keys under any number it offered them.
            keypad_types=frozenset(_KEYS_OFFERED_AS.values()) & set(ours) if keypad else frozenset(),
            noise=str(NOISE_TYPE) in section.formats, bitrate_limit=_bitrate_limit(section, send_type, codec))

    def _answer_section(self, section: Section) -> tuple[Section, Agreement]:
        local = self._local
        if section.protocol not in _PLAIN + _SECURE:
            raise NothingFits(f"{section.protocol} is not spoken here, RTP/AVP and RTP/SAVP are")
        secure = section.protocol in _SECURE
        if not secure and local.secrecy == "require":
            raise NothingFits("plain RTP is not taken here, offer RTP/SAVP")
        if secure and local.secrecy == "never":
            raise NothingFits("SRTP is not taken here, offer RTP/AVP")
        maps = _maps(section)
        chosen = next(((number, codec) for number, codec in _voices(section, maps) if codec.name in local.codecs),
                      None)
        if chosen is None:
            raise NothingFits(f"none of the codecs offered is taken here: {', '.join(local.codecs)}")
        number, codec = chosen
        keypad = _keypad(section, maps, codec)
        noise = codec.clock == 8000 and str(NOISE_TYPE) in section.formats
        attributes = [("rtpmap", f"{number} {_rtpmap(codec)}")]
        if codec.name == "opus":
            attributes.append(("fmtp", f"{number} useinbandfec=1"))
        formats = [str(number)]
        if keypad is not None:
            attributes += [("rtpmap", f"{keypad.payload_type} telephone-event/{keypad.clock}"),
                           ("fmtp", f"{keypad.payload_type} {_KEYS}")]
            formats.append(str(keypad.payload_type))
        if noise:
            attributes.append(("rtpmap", f"{NOISE_TYPE} CN/8000"))
            formats.append(str(NOISE_TYPE))
        keys: Keys | None = None
        if secure:
            tag, suite, theirs = _usable_crypto(section)
            keys = Keys(suite, self._keys[suite], theirs)
            attributes.append(("crypto", f"{tag} {suite} {_inline(keys.ours)}"))
        peer = _peer(section)
        attributes.append(("ptime", str(FRAME_MS)))
        if peer.multiplexed:
            attributes.append(("rtcp-mux", ""))
        attributes.append((_direction(peer), ""))
        agreement = Agreement(peer, codec, number, number, keypad=keypad, keys=keys, noise=noise,
                              keypad_types=frozenset({keypad.payload_type} if keypad else ()),
                              bitrate_limit=_bitrate_limit(section, number, codec))
        return Section("audio", local.port, section.protocol, tuple(formats), local.host, tuple(attributes)), agreement

    def _agreed_keys(self, section: Section) -> Keys:
        tag, suite, theirs = _usable_crypto(section)
        if tag not in ("1", "2") or SUITES[int(tag) - 1] != suite:
            raise NothingFits("the answer's crypto is not one that was offered")
        return Keys(suite, self._keys[suite], theirs)

    def _write(self, sections: tuple[Section, ...], time: str) -> str:
        if self._sent is not None and sections != self._sent:
            self._version += 1  # RFC 3264 section 8: the same only if nothing has changed
        self._sent = sections
        return write_sdp(Description(self._session_id, self._version, self._local.host, sections, time))


def _read(text: str) -> Description:
    try:
        return read_sdp(text)
    except BadSdp as why:
        raise NothingFits(f"the SDP cannot be read: {why}") from why


def _refused(section: Section) -> Section:
    """RFC 3264 section 6: the same kind, protocol and formats, port 0."""
    return Section(section.kind, 0, section.protocol, section.formats, "")


def _rtpmap(codec: Codec) -> str:
    return f"{codec.encoding}/{codec.clock}" + (f"/{codec.channels}" if codec.channels > 1 else "")


def _normal(mapped: str) -> str:
    """An rtpmap's encoding for comparison: names do not count in case, one channel need not be said."""
    return mapped.strip().lower().removesuffix("/1")


def _maps(section: Section) -> dict[int, str]:
    """What each payload type of a section stands for, in the section's order."""
    said: dict[str, str] = {}
    for value in section.values("rtpmap"):
        number, _, mapped = value.partition(" ")
        said.setdefault(number, _normal(mapped))
    static = {str(codec.static): _normal(_rtpmap(codec)) for codec in CODECS.values() if codec.static is not None}
    known = {**static, str(NOISE_TYPE): "cn/8000", **said}
    # 72 to 76 would be taken for RTCP on one port (RFC 5761 section 4).
    return {int(number): known[number] for number in section.formats
            if number in known and re.fullmatch(r"\d{1,3}", number) and int(number) < 128
            and not 72 <= int(number) <= 76}


def _voices(section: Section, maps: Mapping[int, str]) -> list[tuple[int, Codec]]:
    """Voice codecs of a section in its order."""
    known = {_normal(_rtpmap(codec)): codec for codec in CODECS.values()}
    return [(number, known[mapped]) for number, mapped in maps.items() if mapped in known]


def _keypad(section: Section, maps: Mapping[int, str], codec: Codec) -> KeypadFormat | None:
    """How the other side wants keys pressed: with the voice's clock if it has that, else with what it has.

    Some offer 8000 beside Opus; to answer 48000 then loses every key.
    """
    offered = [KeypadFormat(number, clock) for number, mapped in maps.items() for clock in _KEYS_OFFERED_AS
               if mapped == f"telephone-event/{clock}"]
    fitting = [each for each in offered if each.clock == codec.clock]
    return next(iter(fitting or offered), None)


def _peer(section: Section) -> Peer:
    """Where the other side is, and who speaks."""
    said = next((name for name, _ in section.attributes if name in _FLOW), "sendrecv")
    speaks, hears = _FLOW[said]
    multiplexed = section.has("rtcp-mux")
    try:
        host = ip_address(section.address)
    except ValueError:
        return Peer(hears, speaks, multiplexed=multiplexed)  # a host name: its packets will tell where it is
    if host.is_unspecified:  # RFC 3264 section 8.4: the hold of old
        return Peer(False, speaks, multiplexed=multiplexed)
    port = (section.value("rtcp") or "").partition(" ")[0]
    given = int(port) if re.fullmatch(r"[1-9]\d{0,4}", port) else 0
    control = section.port if multiplexed else given if 0 < given <= 65_535 else section.port + 1
    return Peer(hears, speaks, (str(host), section.port), (str(host), min(control, 65_535)), multiplexed)


_FLOW = {"sendrecv": (True, True), "sendonly": (True, False), "recvonly": (False, True), "inactive": (False, False)}


def _direction(peer: Peer) -> str:
    """Our side of the other side's direction (RFC 3264 section 6.1)."""
    return next(name for name, flow in _FLOW.items() if flow == (peer.hears, peer.speaks))


def _bitrate_limit(section: Section, number: int, codec: Codec) -> int | None:
    if codec.name != "opus":
        return None
    for value in section.values("fmtp"):
        found = re.match(rf"{number}\s.*\bmaxaveragebitrate=(\d{{4,6}})\b", value)
        if found:
            return int(found[1])
    return None


def _inline(key: bytes) -> str:
    return f"inline:{base64.b64encode(key).decode()}"


def _usable_crypto(section: Section) -> tuple[str, Suite, bytes]:
    """The first ``a=crypto`` that we can do: tag, suite and key; raises :class:`NothingFits`."""
    for value in section.values("crypto"):
        words = value.split()
        if len(words) < 3 or not re.fullmatch(r"[1-9]\d{0,8}", words[0]):
            continue
        suite = next((each for each in SUITES if each == words[1].upper()), None)
        key = _key(words[2])
        # Session parameters change the cipher unless they are marked as optional with a dash, or are the window
        # size hint (RFC 4568 sections 6.3.6 and 6.3.7).
        if suite is not None and key is not None and all(word.startswith(("-", "WSH=")) for word in words[3:]):
            return words[0], suite, key
    raise NothingFits("SRTP is offered without a key for AES_CM_128_HMAC_SHA1_80 or _32")


def _key(parameter: str) -> bytes | None:
    method, _, value = parameter.partition(":")
    encoded, *more = value.split("|")
    # A lifetime is a number; a part with a colon is a key identifier (MKI) in every packet, which libsrtp has not.
    if method.lower() != "inline" or ";" in value or any(":" in part for part in more):
        return None
    try:
        key = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None
