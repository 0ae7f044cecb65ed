"""The caller without a browser, and the bad network, against an echo that is not the product."""

import sys
from pathlib import Path

import pytest

from tests.harness.impair import ImpairedNetwork, Impairment
from tests.harness.microphone import Microphone
from tests.harness.peer import FRAME, encode, peer_call
from tests.harness.recogniser import text
from tests.harness.server import running_server
from tests.harness.sound import RATE, locate

ECHO = (sys.executable, "-m", "tests.harness.echo_server")
RTP = bytes([128, 111]) + bytes(40)


@pytest.mark.component
async def test_a_peer_hears_its_own_voice_back_from_an_echo(tmp_path: Path) -> None:
    microphone = Microphone().pause(0.5).say("count to twenty")
    async with running_server(tmp_path, command=ECHO) as server, peer_call(server.url, microphone) as call:
        recording = await call.until(lambda so_far: so_far.mic.size > microphone.length + RATE, "the end")
    assert "twenty" in text(recording.agent)
    span = recording.said(microphone)[0]
    at, fit = locate(microphone.utterances[0].sound, recording.agent)
    assert fit > 0.6
    assert at > span.start
    assert recording.of_type("session.created")


@pytest.mark.component
async def test_a_bad_network_carries_a_peers_call_and_loses_its_share(tmp_path: Path) -> None:
    microphone = Microphone().pause(1).say("count to twenty")
    async with (
        running_server(tmp_path, command=ECHO) as server,
        ImpairedNetwork(loss=0.1, jitter_ms=60, seed=3) as network,
        peer_call(server.url, microphone, network) as call,
    ):
        await call.until(lambda so_far: so_far.mic.size > 4 * RATE, "the end")
        arrived = len(call.arrivals)
    assert network.up.traffic.lost > 5
    assert network.down.traffic.lost > 5
    assert 0 < arrived <= network.down.traffic.passed


def test_the_same_seed_loses_the_same_datagrams() -> None:
    one, other = Impairment(0.1, 60, 5), Impairment(0.1, 60, 5)
    fates = [[one.delay(RTP) for _ in range(500)], [other.delay(RTP) for _ in range(500)]]
    assert fates[0] == fates[1]
    assert 30 < fates[0].count(None) < 70
    assert all(fate is None or 0 <= fate < 0.06 for fate in fates[0])


def test_nothing_is_lost_before_media_flows() -> None:
    stun, rtcp = bytes([0, 1]) + bytes(18), bytes([129, 201]) + bytes(30)
    impairment = Impairment(1.0, 60, 5)
    assert [impairment.delay(stun), impairment.delay(rtcp)] == [0.0, 0.0]
    assert impairment.delay(RTP) is None
    assert impairment.delay(stun) is None


def test_a_microphone_becomes_one_packet_for_every_20_ms() -> None:
    microphone = Microphone().pause(1).say("stop")
    assert len(encode(microphone)) == -(-microphone.length // FRAME) + 10


@pytest.mark.component
async def test_a_peer_says_what_it_is_told_in_the_middle_of_a_call(tmp_path: Path) -> None:
    async with running_server(tmp_path, command=ECHO) as server, peer_call(server.url, Microphone()) as call:
        span = await call.say("count to twenty")
        recording = await call.until(lambda so_far: so_far.mic.size > span.end + RATE, "the end")
    at, fit = locate(recording.mic[span.start : span.end], recording.agent)
    assert fit > 0.6
    assert at > span.start
