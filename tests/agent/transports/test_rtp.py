from __future__ import annotations

from contextlib import suppress

import pytest
from aiortc.rtp import HeaderExtensionsMap
from aiortc.rtp import RtpPacket as TheirPacket
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.rtp import MalformedRtpError, RtpPacket, read_rtp, write_rtp

PACKET = RtpPacket(111, 65_535, 0xFFFFFFFF, 0x12345678, b"opus")


@given(st.integers(0, 127), st.integers(0, 65_535), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1),
       st.lists(st.integers(0, 2**32 - 1), max_size=15), st.binary(max_size=60), st.integers(0, 60))
def test_packets_of_another_implementation_are_read_as_it_wrote_them(
        payload_type: int, sequence_number: int, timestamp: int, ssrc: int, sources: list[int],
        payload: bytes, padding: int) -> None:
    theirs = TheirPacket(payload_type=payload_type, sequence_number=sequence_number, timestamp=timestamp)
    theirs.ssrc, theirs.csrc, theirs.payload, theirs.padding_size = ssrc, sources, payload, padding
    wanted = RtpPacket(payload_type, sequence_number, timestamp, ssrc, payload)
    assert read_rtp(theirs.serialize(HeaderExtensionsMap())) == wanted


def test_a_header_extension_is_left_out() -> None:
    # RFC 8285 section 4.2: the one-byte header form, one element of one byte, three bytes of padding.
    data = bytearray(write_rtp(PACKET))
    data[0] |= 0x10
    data[12:12] = bytes.fromhex("bede0001 10aa0000")
    assert read_rtp(bytes(data)) == PACKET


def test_another_implementation_reads_what_is_written() -> None:
    theirs = TheirPacket.parse(write_rtp(PACKET))
    assert (theirs.payload_type, theirs.sequence_number, theirs.timestamp, theirs.ssrc, theirs.payload) == PACKET


@pytest.mark.parametrize("data", [
    b"",
    write_rtp(PACKET)[:11],
    b"\x40" + write_rtp(PACKET)[1:],  # version 1
    b"\x8f" + write_rtp(PACKET)[1:],  # fifteen sources that are not there
    b"\x90" + write_rtp(PACKET)[1:12],  # an extension that is not there
    b"\x90" + write_rtp(PACKET)[1:12] + b"\xbe\xde\xff\xff",  # and one that is cut
    b"\xa0" + write_rtp(PACKET)[1:] + b"\x00",  # no padding, though it says so
    b"\xa0" + write_rtp(PACKET)[1:] + b"\xff",  # more padding than packet
])
def test_damaged_packets_are_told(data: bytes) -> None:
    with pytest.raises(MalformedRtpError):
        read_rtp(data)


@given(st.binary(max_size=64))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    with suppress(MalformedRtpError):
        read_rtp(data)
