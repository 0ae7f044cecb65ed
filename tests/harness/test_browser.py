"""The browser harness, against an echo that is not the product."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.harness.browser import browser_call
from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.server import running_server
from tests.harness.sound import RATE, locate

ECHO = (sys.executable, "-m", "tests.harness.echo_server")


@pytest.mark.e2e
async def test_both_tracks_of_a_call_are_recorded_on_one_clock(tmp_path: Path) -> None:
    microphone = Microphone().pause(1.5).say("what is seven plus five").pause(0.5).say("count to twenty", "awb")
    async with running_server(tmp_path, command=ECHO) as server, browser_call(server.url, microphone) as call:
        recording = await call.until_sample(microphone.length + 2 * RATE)
    said = recording.said(microphone)
    apart = microphone.utterances[1].span.start - microphone.utterances[0].span.start
    assert abs(said[1].start - said[0].start - apart) < RATE // 20
    for span in said:
        piece = recording.mic[span.start : span.end]
        at, fit = locate(piece, recording.agent)
        assert fit > 0.4  # its neteq stretches what the stock jitter buffer delivers in bursts
        assert 0 < at - span.start < RATE  # the echo comes after the sound, and on the same clock
    assert recording.of_type("session.created")
    assert np.max(np.abs(recording.agent[: said[0].start])) < 0.01


@pytest.mark.e2e
async def test_a_bad_network_is_really_in_the_way_of_the_browser(tmp_path: Path) -> None:
    microphone = Microphone().pause(1).say("count to twenty")
    async with (
        running_server(tmp_path, command=ECHO) as server,
        ImpairedNetwork(loss=0.1, jitter_ms=60, seed=3) as network,
        browser_call(server.url, microphone, network) as call,
    ):
        await call.until_sample(4 * RATE)
    for traffic in (network.up.traffic, network.down.traffic):
        assert traffic.passed > 50
        assert 0.04 < traffic.lost / (traffic.lost + traffic.passed) < 0.2
