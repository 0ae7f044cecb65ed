from __future__ import annotations

import numpy as np
import pytest
from aiortc import RTCPeerConnection
from aiortc.mediastreams import MediaStreamError
from aiortc.rtp import RtcpReceiverInfo, RtcpRrPacket

from duologue.agent.media.opus import has_fec
from duologue.agent.transports import webrtc_sender
from duologue.agent.transports.webrtc_sender import ExpectedLoss, ReplyTrack
from duologue.engine import Pcm
from tests.agent.transports.peer import FRAME, RATE, frames_of, voiced


def unexpected(fault: Exception) -> None:
    raise fault


def test_expected_loss_rises_at_once_and_falls_by_halves() -> None:
    loss = ExpectedLoss()
    assert [loss.reported(report) for report in (0, 26, 0, 0, 0, 0)] == [0, 10, 5, 2, 1, 0]
    assert loss.reported(255) == 50


async def test_each_packet_is_one_pull_with_the_next_timestamp() -> None:
    frames = frames_of(voiced(0.2))
    pulled: list[Pcm] = []

    def pull() -> Pcm:
        pulled.append(frames[len(pulled)])
        return pulled[-1]

    track = ReplyTrack(pull, RATE, unexpected)
    times = []
    for count in range(1, 6):
        packet = await track.recv()
        assert len(pulled) == count
        assert packet.pts is not None
        times.append(packet.pts)
        assert packet.time_base.denominator == 48_000
    assert all(time % 960 == 0 for time in times)
    assert times == sorted(set(times))


async def test_a_failing_pull_ends_the_track_and_is_told_once() -> None:
    faults: list[Exception] = []

    def pull() -> Pcm:
        return np.zeros(FRAME + 1, np.int16)

    track = ReplyTrack(pull, RATE, faults.append)
    with pytest.raises(MediaStreamError):
        await track.recv()
    assert len(faults) == 1


async def test_a_stopped_track_pulls_no_more() -> None:
    pulled: list[Pcm] = []

    def pull() -> Pcm:
        pulled.append(np.zeros(FRAME, np.int16))
        return pulled[-1]

    track = ReplyTrack(pull, RATE, unexpected)
    await track.recv()
    track.stop()
    with pytest.raises(MediaStreamError):
        await track.recv()
    assert len(pulled) == 1


async def test_the_encoder_protects_the_reply_once_the_peer_reports_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webrtc_sender, "_REPORT_FRAMES", 5)
    frames = frames_of(voiced(2.0))
    pc = RTCPeerConnection()
    track = ReplyTrack(lambda: frames.pop(0), RATE, unexpected)
    sender = pc.addTrack(track)
    track.heed(sender)

    async def packets(count: int) -> list[bytes]:
        return [bytes(await track.recv()) for _ in range(count)]

    async def report(fraction_lost: int) -> None:
        info = RtcpReceiverInfo(ssrc=sender._ssrc, fraction_lost=fraction_lost, packets_lost=0,
                                highest_sequence=0, jitter=0, lsr=1, dlsr=0)
        await sender._handle_rtcp_packet(RtcpRrPacket(ssrc=1, reports=[info]))

    await report(0)
    await packets(5)  # the report is heeded before the fifth, which still has a copy of the fourth
    assert not any(has_fec(packet) for packet in await packets(9))
    await report(40)
    await packets(5)
    assert any(has_fec(packet) for packet in await packets(10))
    await pc.close()
