from __future__ import annotations

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.sdp import MAX_CANDIDATES, BadOffer, finish_answer, read_offer

SESSION = ("v=0\r\no=- 4611731400430051336 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
           "a=group:BUNDLE 0 1\r\na=msid-semantic: WMS -\r\n")
CONNECTION = ("a=ice-ufrag:4ZcD\r\na=ice-pwd:2/1muCWoOi3uLifh0NuRHlHy\r\na=ice-options:trickle\r\n"
              "a=fingerprint:sha-256 " + ":".join(["7B"] * 32) + "\r\na=setup:actpass\r\n")
AUDIO = ("m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110\r\nc=IN IP4 0.0.0.0\r\na=rtcp:9 IN IP4 0.0.0.0\r\n"
         + CONNECTION + "a=mid:0\r\na=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level\r\na=sendrecv\r\n"
         "a=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\n"
         "a=fmtp:111 minptime=10;useinbandfec=1\r\na=rtpmap:63 red/48000/2\r\na=fmtp:63 111/111\r\n"
         "a=rtpmap:9 G722/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:13 CN/8000\r\n"
         "a=rtpmap:110 telephone-event/48000\r\n")
DATA = ("m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n" + CONNECTION
        + "a=mid:1\r\na=sctp-port:5000\r\na=max-message-size:262144\r\n")
OFFER = SESSION + AUDIO + DATA
"""The sections of an offer as Chromium writes it."""


def test_a_browsers_offer_is_read() -> None:
    offer = read_offer(OFFER)
    assert offer.data_channel
    assert offer.media == ("voice",)
    assert not read_offer(SESSION + AUDIO).data_channel


@pytest.mark.parametrize(("text", "code"), [
    ("", "malformed_sdp"),
    ("hello", "malformed_sdp"),
    ("v=0\r\nm=nonsense\r\n", "malformed_sdp"),
    (OFFER.replace("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=audio 9 UDP/TLS/RTP/SAVPF x"), "malformed_sdp"),
    (OFFER.replace("a=ice-ufrag:4ZcD\r\n", ""), "malformed_sdp"),
    (re.sub("a=fingerprint:.*\r\n", "", OFFER), "malformed_sdp"),
    (OFFER.replace("a=setup:actpass\r\n", ""), "malformed_sdp"),
    (OFFER.replace("a=rtcp-mux\r\n", ""), "malformed_sdp"),
    (OFFER.replace("a=mid:1", "a=mid:0"), "malformed_sdp"),
    (OFFER.replace("a=mid:0\r\n", ""), "malformed_sdp"),
    (OFFER + DATA.replace("mid:1", "mid:2") * 7, "malformed_sdp"),
    (OFFER.replace("m=application", "m=text"), "malformed_sdp"),
    (SESSION + DATA, "no_audio"),
    (SESSION, "no_audio"),
    (OFFER.replace("m=audio 9", "m=audio 0"), "no_audio"),
    (OFFER.replace("a=sendrecv", "a=recvonly"), "no_audio"),
    (OFFER.replace("a=sendrecv", "a=inactive"), "no_audio"),
    (OFFER.replace("a=rtpmap:111 opus/48000/2\r\na=rtcp-fb:111 transport-cc\r\n"
                   "a=fmtp:111 minptime=10;useinbandfec=1\r\n", ""), "no_opus"),
])
def test_an_offer_that_cannot_be_answered_is_refused_by_name(text: str, code: str) -> None:
    with pytest.raises(BadOffer) as refused:
        read_offer(text)
    assert refused.value.code == code
    assert refused.value.message


def test_candidates_without_an_address_are_left_out_and_the_list_stays_open() -> None:
    lines = ("a=candidate:1 1 udp 2113937151 8d3b6b4a-1f2b-4c1e-9d53-5f6a7b8c9d0e.local 51234 typ host\r\n"
             "a=candidate:2 1 udp 2122260223 192.0.2.7 51235 typ host generation 0\r\n"
             "a=candidate:3 1 tcp 1518280447 192.0.2.7 9 typ host tcptype active\r\n"
             "a=candidate:4 1 udp 1677729535 2001:db8::7 51236 typ srflx raddr 0.0.0.0 rport 0\r\n"
             "a=candidate:5 1 udp 1 192.0.2.8 1 typ prflx\r\n"
             "a=candidate:6\r\n"
             "a=end-of-candidates\r\n")
    text = read_offer(SESSION + AUDIO + lines + DATA).sdp
    assert re.findall(r"a=candidate:(\d)", text) == ["2", "4"]
    assert "end-of-candidates" not in text


def test_no_more_candidates_are_taken_than_the_limit() -> None:
    lines = "".join(f"a=candidate:{n} 1 udp 1 192.0.2.7 {n + 1000} typ host\r\n" for n in range(500))
    assert read_offer(SESSION + AUDIO + lines + DATA).sdp.count("a=candidate:") == MAX_CANDIDATES


def test_further_media_sections_are_named_in_order() -> None:
    video = AUDIO.replace("m=audio", "m=video").replace("mid:0", "mid:2")
    refused = AUDIO.replace("m=audio 9", "m=audio 0").replace("mid:0", "mid:3")
    assert read_offer(SESSION + refused + video + AUDIO + DATA).media == ("audio", "video", "voice")


def test_the_answer_gets_opus_parameters_under_its_payload_type() -> None:
    answer = finish_answer("v=0\r\na=rtpmap:109 opus/48000/2\r\na=rtpmap:0 PCMU/8000\r\n")
    assert answer == ("v=0\r\na=rtpmap:109 opus/48000/2\r\na=fmtp:109 minptime=10;useinbandfec=1\r\n"
                      "a=rtpmap:0 PCMU/8000\r\n")


@given(st.data())
def test_no_damage_to_an_offer_raises_anything_but_bad_offer(data: st.DataObject) -> None:
    lines = OFFER.split("\r\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        damage = data.draw(st.sampled_from(["drop", "double", "cut", "replace"]))
        if damage == "drop":
            lines[at:at + 1] = []
        elif damage == "double":
            lines[at:at] = [lines[at]]
        elif damage == "cut":
            lines[at] = lines[at][:data.draw(st.integers(0, max(len(lines[at]), 1)))]
        else:
            lines[at] = data.draw(st.binary(max_size=20)).decode("latin-1")
        lines = lines or [""]
    with suppress(BadOffer):
        read_offer("\r\n".join(lines))
