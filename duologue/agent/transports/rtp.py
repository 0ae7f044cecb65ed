"""RTP packets (RFC 3550 section 5.1) without a class per field."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("!BBHII")
_VERSION = 2
_PADDING, _EXTENSION, _SOURCES = 0x20, 0x10, 0x0F


class MalformedRtpError(ValueError):
    """The bytes are not an RTP packet."""


class RtpPacket(NamedTuple):
    """What a receiver needs of a packet; ``timestamp`` counts at the codec's RTP clock."""

    payload_type: int
    sequence_number: int
    timestamp: int
    ssrc: int
    payload: bytes


def read_rtp(data: bytes) -> RtpPacket:
    """Take a packet apart, leaving out its sources, header extension and padding."""
    end = len(data)
    if end < _HEADER.size:
        raise MalformedRtpError("shorter than a header")
    flags, kind, sequence_number, timestamp, ssrc = _HEADER.unpack_from(data)
    if flags >> 6 != _VERSION:
        raise MalformedRtpError("not version 2")
    start = _HEADER.size + 4 * (flags & _SOURCES)
    if flags & _EXTENSION:
        if start + 4 > end:
            raise MalformedRtpError("the extension is cut")
        start += 4 + 4 * int.from_bytes(data[start + 2:start + 4], "big")
    if flags & _PADDING:
        end -= data[-1] or end + 1  # a length of 0 would not count itself
    if start > end:
        raise MalformedRtpError("longer than it is")
    return RtpPacket(kind & 0x7F, sequence_number, timestamp, ssrc, data[start:end])


def write_rtp(packet: RtpPacket, marker: bool = False) -> bytes:
    """Put a packet together; what ``marker`` means is the payload type's affair."""
    return _HEADER.pack(_VERSION << 6, marker << 7 | packet.payload_type, packet.sequence_number, packet.timestamp,
                        packet.ssrc) + packet.payload
