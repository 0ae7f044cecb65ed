"""What an SDP offer must have, and what is changed in offers and answers on their way through aiortc."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Literal

from aiortc.sdp import MediaDescription, SessionDescription

BadOfferCode = Literal["malformed_sdp", "no_audio", "no_opus"]

MAX_SECTIONS = 8
"""Media sections an offer may have: audio and data, and some that are answered as inactive."""

MAX_CANDIDATES = 32
"""Candidates taken of an offer. Each makes the server send checks to an address of the caller's choice."""

OPUS_FMTP = "minptime=10;useinbandfec=1"
"""Opus parameters of the answer (RFC 7587 section 6.1). Without ``useinbandfec`` Chrome sends no in-band FEC;
``usedtx`` stays off, so that packets keep coming in silence."""

_OPUS_RTPMAP = re.compile(r"^a=rtpmap:(\d+) opus/48000/2\r?$", re.IGNORECASE)


class BadOffer(ValueError):  # noqa: N818 - the name of the thing that came
    """An offer that cannot be answered; its text tells the caller what to change."""

    def __init__(self, code: BadOfferCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer that can be answered.

    ``media`` are its audio and video sections in order: one is the ``voice``, others are answered as
    inactive. ``data_channel`` says whether it has a data section.
    """

    sdp: str
    data_channel: bool
    media: tuple[Literal["voice", "audio", "video"], ...]


def read_offer(text: str) -> Offer:
    """Check an offer, and leave out the candidates that the server has no use for. Raises ``BadOffer``."""
    if not text.lstrip().startswith("v=0"):
        raise BadOffer("malformed_sdp", "the body is not an SDP offer: it must begin with v=0")
    text = _useful_candidates(text.lstrip())
    try:
        session = SessionDescription.parse(text)
    except Exception as fault:  # the parser raises whatever its line of code runs into
        raise BadOffer("malformed_sdp", "the SDP offer cannot be parsed") from fault
    if len(session.media) > MAX_SECTIONS:
        raise BadOffer("malformed_sdp", f"the offer has more than {MAX_SECTIONS} media sections")
    media = [section for section in session.media if section.kind in ("audio", "video")]
    voice = next((section for section in media if section.kind == "audio" and section.port), None)
    if voice is None:
        raise BadOffer("no_audio", "the offer has no audio section: "
                                   "add the microphone's track before createOffer")
    if (voice.direction or "sendrecv") != "sendrecv":
        raise BadOffer("no_audio", f"the offer's audio section is {voice.direction}; it must be sendrecv")
    if not any(codec.mimeType.lower() == "audio/opus" and codec.clockRate == 48000
               for codec in voice.rtp.codecs):
        raise BadOffer("no_opus", "the offer's audio section has no opus/48000/2, the one codec spoken here")
    for section in session.media:
        _check_transport(section)
    mids = [section.rtp.muxId for section in session.media]
    if not all(mids) or len(set(mids)) != len(mids):
        raise BadOffer("malformed_sdp", "every media section needs an a=mid of its own")
    return Offer(
        sdp=text,
        data_channel=any(section.kind == "application" and section.port for section in session.media),
        media=tuple("voice" if section is voice else "audio" if section.kind == "audio" else "video"
                    for section in media),
    )


def finish_answer(text: str) -> str:
    """Return aiortc's answer with the Opus parameters, which it does not write."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        opus = _OPUS_RTPMAP.match(line)
        if opus:
            lines.append(f"a=fmtp:{opus.group(1)} {OPUS_FMTP}")
    return "\r\n".join(lines) + "\r\n"


def _check_transport(section: MediaDescription) -> None:
    """Raise ``BadOffer`` for a section whose connection could not be set up."""
    if section.kind not in ("audio", "video", "application"):
        raise BadOffer("malformed_sdp", f"media sections of the kind {section.kind!r} are not supported")
    if section.ice is None or not section.ice.usernameFragment or not section.ice.password:
        raise BadOffer("malformed_sdp", "the offer lacks a=ice-ufrag or a=ice-pwd")
    if section.dtls is None or not section.dtls.fingerprints:
        raise BadOffer("malformed_sdp", "the offer lacks a=fingerprint or a=setup (media must be DTLS-SRTP)")
    if section.kind != "application" and not section.rtcp_mux:
        raise BadOffer("malformed_sdp", "the offer lacks a=rtcp-mux")


def _useful_candidates(text: str) -> str:
    """Keep UDP candidates with an address, at most ``MAX_CANDIDATES``, and no end-of-candidates.

    A ``.local`` name (RFC 8828) would cost a second of multicast look-up before the answer, and its host is
    found without: it sends checks to us from an address that ICE then takes as peer-reflexive. That is
    also why the offer's list is never complete.
    """
    lines, kept = [], 0
    for line in text.splitlines():
        if line.startswith("a=end-of-candidates"):
            continue
        if line.startswith("a=candidate:"):
            if kept == MAX_CANDIDATES or not _has_udp_address(line):
                continue
            kept += 1
        lines.append(line)
    return "\r\n".join(lines) + "\r\n"


def _has_udp_address(candidate: str) -> bool:
    """Whether an ``a=candidate`` line (RFC 8839 section 5.1) is UDP and names an IP address."""
    fields = candidate.split()
    if len(fields) < 8 or fields[2].lower() != "udp" or fields[7] not in ("host", "srflx", "relay"):
        return False
    try:
        ipaddress.ip_address(fields[4])
    except ValueError:
        return False
    return True
