"""Whatever is offered, the answer is one that RFC 3264 allows; and each rule about formats, keys and holding."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace

import pytest
from aiortc.sdp import SessionDescription
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.sip.media.negotiation import LocalMedia, Negotiator, NothingFits, Secrecy
from duologue.agent.transports.sip.media.sdp import BadSdp, read_sdp
from tests.agent.media import steady

LOCAL = LocalMedia("192.0.2.1", 20_000)
KEY = base64.b64encode(bytes(range(30))).decode()
HEAD = "v=0\r\no=- 7 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n"

BARESIP_OPUS = HEAD + (
    "m=audio 10000 RTP/AVP 96 97\r\na=rtpmap:96 opus/48000/2\r\na=fmtp:96 stereo=1;sprop-stereo=1\r\n"
    "a=rtpmap:97 telephone-event/8000\r\na=fmtp:97 0-15\r\na=sendrecv\r\na=ptime:20\r\n")
"""What baresip offers beside Opus: keys at 8000, not 48000."""


def audio(*lines: str, formats: str = "0 101", protocol: str = "RTP/AVP", port: int = 10_000) -> str:
    return HEAD + "".join(f"{line}\r\n" for line in (
        f"m=audio {port} {protocol} {formats}", "a=rtpmap:101 telephone-event/8000", *lines))


# --- any offer ----------------------------------------------------------------------------------------------

DIRECTIONS = {"sendrecv": {"sendrecv", "sendonly", "recvonly", "inactive"}, "sendonly": {"recvonly", "inactive"},
              "recvonly": {"sendonly", "inactive"}, "inactive": {"inactive"}}
"""What may answer what (RFC 3264 section 6.1)."""

FORMATS = {"0": None, "8": "PCMA/8000/1", "9": "G722/8000", "13": "CN/8000", "18": "G729/8000", "3": None,
           "96": "opus/48000/2", "97": "OPUS/48000/2", "98": "telephone-event/8000", "99": "telephone-event/48000",
           "100": "telephone-event/16000", "110": "speex/16000", "111": "opus/48000", "112": "PCMU/8000",
           "telephone": None}
CRYPTO = [f"1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}", f"2 AES_CM_128_HMAC_SHA1_32 inline:{KEY}|2^31",
          f"3 AES_CM_128_HMAC_SHA1_80 inline:{KEY}|2^20|1:4", "4 AES_CM_128_HMAC_SHA1_80 inline:short",
          f"5 AES_256_CM_HMAC_SHA1_80 inline:{KEY}", f"6 AES_CM_128_HMAC_SHA1_80 inline:{KEY} UNENCRYPTED_SRTP",
          f"7 AES_CM_128_HMAC_SHA1_32 inline:{KEY} WSH=64", "8 nonsense"]
USABLE = {"1", "2", "7"}

sections = st.fixed_dictionaries({
    "kind": st.sampled_from(["audio", "audio", "video", "application"]),
    "port": st.sampled_from([0, 10_000, 65_535]),
    "protocol": st.sampled_from(["RTP/AVP", "RTP/AVP", "RTP/SAVP", "RTP/AVPF", "RTP/SAVPF", "UDP/TLS/RTP/SAVP", "udp"]),
    "formats": st.lists(st.sampled_from(sorted(FORMATS)), min_size=1, unique=True),
    "direction": st.sampled_from(["", *DIRECTIONS]),
    "crypto": st.lists(st.sampled_from(CRYPTO), max_size=3, unique=True),
    "mux": st.booleans(), "address": st.sampled_from(["", "0.0.0.0", "192.0.2.77", "phone.example"]),
})


def text_of(parts: Sequence[dict[str, object]], session_direction: str) -> str:
    lines = [HEAD.strip().replace("\r\n", "\n").replace("t=0 0", "t=3034423619 3042462419")]
    if session_direction:
        lines.append(f"a={session_direction}")
    for part in parts:
        formats = part["formats"]
        assert isinstance(formats, list)
        lines.append(f"m={part['kind']} {part['port']} {part['protocol']} {' '.join(formats)}")
        if part["address"]:
            lines.append(f"c=IN IP4 {part['address']}")
        lines += [f"a=rtpmap:{number} {FORMATS[number]}" for number in formats if FORMATS[number]]
        lines += [f"a=crypto:{value}" for value in part["crypto"]]  # type: ignore[attr-defined]
        if part["mux"]:
            lines.append("a=rtcp-mux")
        if part["direction"]:
            lines.append(f"a={part['direction']}")
    return "\r\n".join(lines) + "\r\n"


def fits(part: dict[str, object], secrecy: Secrecy) -> bool:
    """Whether a section can be taken, told without the code under test."""
    voices = {"0", "8", "9", "96", "97", "112"} & set(part["formats"])  # type: ignore[call-overload]
    plain = part["protocol"] in ("RTP/AVP", "RTP/AVPF") and secrecy != "require"
    secure = (part["protocol"] in ("RTP/SAVP", "RTP/SAVPF") and secrecy != "never"
              and any(value[0] in USABLE for value in part["crypto"]))  # type: ignore[attr-defined]
    return bool(part["kind"] == "audio" and part["port"] and voices and (plain or secure))


@steady
@given(st.lists(sections, max_size=4), st.sampled_from(["", *DIRECTIONS]),
       st.sampled_from(["never", "accept", "require"]))
def test_every_answer_is_legal_for_its_offer(
        parts: list[dict[str, object]], session_direction: str, secrecy: Secrecy) -> None:
    negotiator = Negotiator(replace(LOCAL, secrecy=secrecy))
    offer = text_of(parts, session_direction)
    taken = next((index for index, part in enumerate(parts) if fits(part, secrecy)), None)
    if taken is None:
        with pytest.raises(NothingFits):
            negotiator.answer(offer)
        return
    text, agreement = negotiator.answer(offer)
    if all(part["protocol"] != "udp" and "telephone" not in str(part["formats"]) for part in parts):
        SessionDescription.parse(text)  # another reader takes what it knows
    answer, offered = read_sdp(text), read_sdp(offer)
    assert answer.time == offered.time
    assert [(each.kind, each.protocol) for each in answer.sections] == [
        (each.kind, each.protocol) for each in offered.sections]
    assert [bool(each.port) for each in answer.sections] == [index == taken for index in range(len(parts))]
    theirs, ours = offered.sections[taken], answer.sections[taken]
    assert set(ours.formats) <= set(theirs.formats)
    for mapped in ours.values("rtpmap"):
        number, _, name = mapped.partition(" ")
        assert number in ours.formats
        said = FORMATS[number] or {"0": "PCMU/8000"}[number]
        assert name.lower() == said.lower().removesuffix("/1")
    said_direction = str(parts[taken]["direction"] or session_direction or "sendrecv")
    direction, = (name for name, _ in ours.attributes if name in DIRECTIONS)
    assert direction in DIRECTIONS[said_direction]
    assert agreement.peer.hears == (direction in ("sendrecv", "sendonly"))
    assert agreement.peer.speaks == (direction in ("sendrecv", "recvonly"))
    if "SAVP" in ours.protocol:
        crypto, = ours.values("crypto")
        tag, suite, key = crypto.split()
        assert tag in USABLE
        assert any(value.split()[:2] == [tag, suite] for value in theirs.values("crypto"))
        assert agreement.keys is not None
        assert base64.b64decode(key.removeprefix("inline:")) == agreement.keys.ours != agreement.keys.theirs
    else:
        assert not ours.values("crypto")
        assert agreement.keys is None
    assert ours.has("rtcp-mux") <= theirs.has("rtcp-mux")
    # Keys pressed are taken as offered; one number of voice, so that the codec never changes by the packet.
    assert len([number for number in ours.formats if number not in ("98", "99", "13")]) == 1
    assert (agreement.keypad is not None) == bool({"98", "99"} & set(theirs.formats))


@steady
@given(st.text(max_size=400), st.integers(0, 600), st.integers(0, 600))
def test_what_is_no_sdp_is_refused_and_nothing_else_happens(noise: str, start: int, end: int) -> None:
    offer = BARESIP_OPUS
    mangled = offer[: min(start, len(offer))] + noise + offer[min(end, len(offer)):]
    try:
        read_sdp(mangled)
    except BadSdp:
        with pytest.raises(NothingFits):
            Negotiator(LOCAL).answer(mangled)


# --- formats ------------------------------------------------------------------------------------------------


def test_keys_beside_opus_are_answered_with_the_clock_that_was_offered() -> None:
    text, agreement = Negotiator(LOCAL).answer(BARESIP_OPUS)
    assert "a=rtpmap:97 telephone-event/8000" in text
    assert agreement.keypad is not None
    assert (agreement.codec.name, agreement.keypad.clock) == ("opus", 8000)


def test_of_two_clocks_for_keys_the_voices_own_is_taken() -> None:
    _, agreement = Negotiator(LOCAL).answer(audio(
        "a=rtpmap:96 opus/48000/2", "a=rtpmap:102 telephone-event/48000", formats="96 101 102"))
    assert agreement.keypad is not None
    assert agreement.keypad.payload_type == 102


def test_the_offers_order_of_codecs_decides_among_ours() -> None:
    chosen = Negotiator(LOCAL).answer(audio(formats="18 8 0"))[1]
    assert chosen.codec.name == "pcma"
    only = Negotiator(replace(LOCAL, codecs=("pcmu",))).answer(audio(formats="18 8 0"))[1]
    assert only.codec.name == "pcmu"


def test_nothing_that_fits_says_what_would() -> None:
    with pytest.raises(NothingFits, match="opus, g722, pcma, pcmu"):
        Negotiator(LOCAL).answer(audio(formats="18"))
    with pytest.raises(NothingFits, match="RTP/SAVP"):
        Negotiator(replace(LOCAL, secrecy="require")).answer(audio())


def test_a_limit_on_opus_bitrate_is_heeded() -> None:
    _, agreement = Negotiator(LOCAL).answer(BARESIP_OPUS.replace("stereo=1;", "maxaveragebitrate=16000;"))
    assert agreement.bitrate_limit == 16_000


def test_of_plain_and_secure_sections_the_first_that_fits_is_taken() -> None:
    secure = f"m=audio 10002 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}\r\n"
    text, agreement = Negotiator(LOCAL).answer(audio() + secure)
    assert agreement.keys is None
    assert "m=audio 0 RTP/SAVP 0" in text
    text, agreement = Negotiator(replace(LOCAL, secrecy="require")).answer(audio() + secure)
    assert agreement.keys is not None
    assert agreement.peer.address == ("192.0.2.9", 10_002)


# --- holding, and offers within a call ----------------------------------------------------------------------


@pytest.mark.parametrize(("lines", "hears", "speaks"), [
    ((), True, True), (("a=sendonly",), False, True), (("a=recvonly",), True, False), (("a=inactive",), False, False),
    (("c=IN IP4 0.0.0.0",), False, True)])
def test_each_way_to_hold(lines: tuple[str, ...], hears: bool, speaks: bool) -> None:
    _, agreement = Negotiator(LOCAL).answer(audio(*lines))
    assert (agreement.peer.hears, agreement.peer.speaks) == (hears, speaks)


def test_the_version_rises_with_each_change_and_only_then() -> None:
    negotiator = Negotiator(LOCAL)
    versions = [read_sdp(negotiator.answer(offer)[0]).version
                for offer in (audio(), audio(), audio("a=sendonly"), audio())]
    assert versions == [1, 1, 2, 3]


def test_holding_keeps_the_keys() -> None:
    negotiator = Negotiator(LOCAL)
    offer = audio(f"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:{KEY}", protocol="RTP/SAVP")
    before, after = (negotiator.answer(offer + extra)[1] for extra in ("", "a=inactive\r\n"))
    assert before.keys == after.keys


def test_where_control_packets_go() -> None:
    peers = [Negotiator(LOCAL).answer(audio(line))[1].peer for line in ("a=x", "a=rtcp:10007", "a=rtcp-mux")]
    assert [peer.control and peer.control[1] for peer in peers] == [10_001, 10_007, 10_000]


# --- our offers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("secrecy", ["never", "require"])
def test_two_of_us_agree(secrecy: Secrecy) -> None:
    caller = Negotiator(replace(LOCAL, secrecy=secrecy))
    called = Negotiator(LocalMedia("192.0.2.2", 30_000, secrecy=secrecy))
    answer, theirs = called.answer(caller.offer())
    ours = caller.accept(answer)
    assert ours.codec == theirs.codec
    assert (ours.send_type, ours.receive_type) == (theirs.receive_type, theirs.send_type)
    assert (ours.peer.address, theirs.peer.address) == (("192.0.2.2", 30_000), ("192.0.2.1", 20_000))
    assert ours.keypad == theirs.keypad
    assert ours.keypad is not None
    if secrecy == "require":
        assert ours.keys is not None
        assert theirs.keys is not None
        assert (ours.keys.ours, ours.keys.theirs) == (theirs.keys.theirs, theirs.keys.ours)


def test_an_answer_may_name_another_number_for_a_codec() -> None:
    negotiator = Negotiator(LOCAL)
    negotiator.offer()
    agreement = negotiator.accept(HEAD + "m=audio 4000 RTP/AVP 120\r\na=rtpmap:120 opus/48000/2\r\n")
    assert (agreement.send_type, agreement.receive_type) == (120, 111)


def test_a_fresh_offer_within_a_call_keeps_the_sections() -> None:
    negotiator = Negotiator(LOCAL)
    negotiator.answer(HEAD + "m=video 4002 RTP/AVP 31\r\n" + audio().removeprefix(HEAD))
    video, voice = read_sdp(negotiator.offer()).sections
    assert (video.kind, video.port, voice.kind, voice.port) == ("video", 0, "audio", 20_000)


@pytest.mark.parametrize("answer", [
    "m=audio 0 RTP/AVP 0\r\n", "m=audio 4000 RTP/SAVP 0\r\n", "m=audio 4000 RTP/AVP 18\r\n", "",
    "m=audio 4000 RTP/AVP 0\r\nm=video 0 RTP/AVP 31\r\n"])
def test_an_answer_that_does_not_answer_is_refused(answer: str) -> None:
    negotiator = Negotiator(LOCAL)
    negotiator.offer()
    with pytest.raises(NothingFits):
        negotiator.accept(HEAD + answer)
    with pytest.raises(NothingFits):  # nor does anything answer no offer
        negotiator.accept(HEAD + "m=audio 4000 RTP/AVP 0\r\n")
