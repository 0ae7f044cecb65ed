from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sipmessage import Request, Response

from duologue.agent.transports.sip.signalling.framing import PING, StreamFramer, Unframed
from duologue.agent.transports.sip.signalling.wire import (
    Hop,
    Malformed,
    encode,
    read_message,
    reply,
    reply_hop,
    sdp_of,
    stamp,
    tag_of,
    top_via,
)

INVITE = b"\r\n".join([
    b"INVITE sip:line@192.0.2.1 SIP/2.0",
    b"v: SIP/2.0/UDP pbx1;branch=z9hG4bKa , SIP/2.0/TCP [2001:db8::9]:5070;branch=z9hG4bKb",
    b"f: \"A\" <sip:a@pbx1>;tag=f1",
    b"t: <sip:line@192.0.2.1>",
    b"i: c1@pbx1",
    b"CSeq : 7",
    b"  INVITE",
    b"m: <sip:a@pbx1:5066>",
    b"c: application/sdp",
    b"l: 3",
    b"", b"v=0 and more"])

SOURCE = Hop("udp", "192.0.2.9", 40000)


def test_compact_folded_and_oddly_spaced_headers_are_read() -> None:
    message = read_message(INVITE)
    assert isinstance(message, Request)
    assert str(message.cseq) == "7 INVITE"
    assert top_via(message).host == "pbx1"
    assert sdp_of(message) == "v=0"


@pytest.mark.parametrize(("old", "new", "status"), [
    (b"SIP/2.0\r\nv:", b"SIP/3.0\r\nv:", 505),
    (b"sip:line@192.0.2.1 SIP", b"mailto:line@192.0.2.1 SIP", 416),
    (b"sip:line@192.0.2.1 SIP", b"sip:line@ SIP", 400),
    (b"7\r\n  INVITE", b"7\r\n  BYE", 400),
    (b"7\r\n  INVITE", b"9999999999\r\n  INVITE", 400),
    (b";tag=f1", b"", 400),
    (b"l: 3", b"l: 300", 400),
    (b"l: 3", b"l: -3", 400),
    (b"l: 3", b"l: 3\r\nContent-Length: 4", 400),
    (b"m: <sip:a@pbx1:5066>\r\n", b"", 400),
    (b"m: <sip:a@pbx1:5066>", b"m: *", 400),
    (b"l: 3", b"l: 3\r\nMax-Forwards: many", 400),
    (b"l: 3", b"l: 3\r\nRoute: <sip:", 400),
    (b"i: c1@pbx1", b"i: c1@pbx1\r\ni: c2", 400),
])
def test_a_malformed_request_says_what_to_answer(old: bytes, new: bytes, status: int) -> None:
    assert old in INVITE
    with pytest.raises(Malformed) as caught:
        read_message(INVITE.replace(old, new))
    assert caught.value.status == status
    assert caught.value.request is not None
    assert reply(caught.value.request, status).headers["Call-ID"].startswith("c1")


@pytest.mark.parametrize("data", [
    b"", b"INVITE\r\n\r\n", b"\xff\xfe\r\n\r\n", b"SIP/2.0 99 x\r\n\r\n", b"SIP/2.0 200 OK\r\n\r\n",
    INVITE.replace(b"pbx1;branch", b"pb\x01x1;branch"), INVITE.replace(b"v: SIP/2.0/UDP", b"v: HTTP"),
    INVITE.replace(b"i: c1@pbx1\r\n", b""), INVITE.replace(b"t: <", b"t <"),
    INVITE.replace(b"i: c1", b"X: y\r\n" * 300 + b"i: c1")])
def test_what_cannot_be_answered_is_dropped(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        read_message(data)
    assert caught.value.request is None


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_malformed(data: bytes) -> None:
    with contextlib.suppress(Malformed):
        read_message(data)


@settings(deadline=None)
@given(st.data())
def test_a_damaged_message_is_read_or_malformed_and_can_be_answered(data: st.DataObject) -> None:
    damaged = bytearray(INVITE)
    for _ in range(data.draw(st.integers(1, 8))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        request = read_message(bytes(damaged))
    except Malformed as error:
        if error.request is None:
            return
        request = error.request
    if isinstance(request, Request):
        stamp(request, SOURCE)
        reply_hop(request, SOURCE)
        assert b"\r\n\r\n" in encode(reply(request, 400, to_tag="t"))


def test_a_response_goes_back_where_rport_says() -> None:
    message = read_message(INVITE.replace(b"z9hG4bKa", b"z9hG4bKa;rport;received=198.51.100.1"))
    assert isinstance(message, Request)
    stamp(message, SOURCE)
    assert message.headers.getlist("Via")[0] == "SIP/2.0/UDP pbx1;branch=z9hG4bKa;rport=40000;received=192.0.2.9"
    assert reply_hop(message, SOURCE) == SOURCE


def test_a_response_without_rport_goes_to_the_vias_port() -> None:
    message = read_message(INVITE)
    assert isinstance(message, Request)
    stamp(message, SOURCE)
    assert reply_hop(message, SOURCE) == Hop("udp", "192.0.2.9", 5060)
    assert reply_hop(message, Hop("tcp", "192.0.2.9", 40000)).port == 40000


def test_a_phrase_cannot_smuggle_a_header_in() -> None:
    request = read_message(INVITE)
    assert isinstance(request, Request)
    response = read_message(encode(reply(request, 486, "busy\r\nX-Evil: 1", to_tag="t1")))
    assert isinstance(response, Response)
    assert response.phrase == "busy X-Evil: 1"
    assert "X-Evil" not in response.headers.keys()  # noqa: SIM118
    assert tag_of(response, "To") == "t1"


MESSAGES = [INVITE[:-len(b" and more")].replace(b"INVITE sip", b"INVITE sip", 1),
            b"OPTIONS sip:x SIP/2.0\r\nContent-Length: 0\r\n\r\n",
            b"SIP/2.0 200 OK\r\nContent-length :  5\r\n\r\n\r\n\r\nx"]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*MESSAGES, PING]), max_size=6), st.data())
def test_a_stream_is_cut_the_same_however_it_arrives(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(messages)
    framer = StreamFramer(4096)
    found: list[bytes] = []
    position = 0
    while position < len(stream):
        step = data.draw(st.integers(1, len(stream) - position))
        found += framer.feed(stream[position:position + step])
        position += step
    assert found == messages


@pytest.mark.parametrize("stream", [
    b"OPTIONS sip:x SIP/2.0\r\nVia: x\r\n\r\n", b"x" * 5000, b"A b C\r\nContent-Length: 99999\r\n\r\n"])
def test_a_stream_that_cannot_be_cut_is_given_up(stream: bytes) -> None:
    with pytest.raises(Unframed):
        StreamFramer(4096).feed(stream)


def test_a_pong_between_messages_is_swallowed() -> None:
    framer = StreamFramer(4096)
    assert framer.feed(b"\r\n") == []
    assert framer.feed(MESSAGES[1]) == [MESSAGES[1]]
