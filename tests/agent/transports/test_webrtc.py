"""Real aiortc peers on this machine's own address; what is asserted is counted: samples, packets, events."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from aioice import ice

from duologue.agent.media.opus import OpusDecoder
from duologue.agent.transports import webrtc
from duologue.agent.transports.sdp import BadOffer
from duologue.agent.transports.webrtc import NoAddress, WebRtcTransport
from duologue.engine import Pcm
from tests.agent.transports.peer import RATE, Fate, Peer, RecordingCall, encoded, frames_of, lag, voiced

pytestmark = pytest.mark.component

SOUND = voiced(2.4)


@dataclass
class Connected:
    transport: WebRtcTransport
    call: RecordingCall
    peer: Peer
    answer: str


@asynccontextmanager
async def connected(peer: Peer, call: RecordingCall | None = None) -> AsyncIterator[Connected]:
    call = call or RecordingCall()
    transport = WebRtcTransport("rtc_test")
    answer = await transport.accept(await peer.offer(), call)
    try:
        await peer.answered(answer)
        await call.until(lambda: call.connections > 0)
        yield Connected(transport, call, peer, answer)
    finally:
        await transport.close()
        await peer.close()


def clean(index: int) -> int | None:
    return 0


def one_percent_lost(index: int) -> int | None:
    return None if index % 100 == 57 else 0


def ten_percent_lost_some_swapped(index: int) -> int | None:
    if index % 10 == 4:
        return None
    return 1 if index % 10 == 8 else 0


def bursts_lost(index: int) -> int | None:
    return None if index % 40 in (20, 21, 22) else 0


@pytest.mark.parametrize("fate", [clean, one_percent_lost, ten_percent_lost_some_swapped, bursts_lost])
async def test_loss_and_reordering_move_no_sample_in_time(fate: Fate) -> None:
    async with connected(Peer(encoded(SOUND), fate=fate)) as on:
        on.peer.track.start.set()
        await on.peer.track.sent.wait()
        await on.call.until(lambda: on.call.heard.size >= SOUND.size)
        heard = on.call.heard
        second = RATE
        begin, end = lag(heard, SOUND, 1600, second), lag(heard, SOUND, SOUND.size - second - 1600, second)
        assert abs(begin - end) <= 1


async def test_the_reply_leaves_in_order_on_one_clock_and_says_what_was_pulled() -> None:
    call = RecordingCall(frames_of(SOUND))
    call.speaking = True
    async with connected(Peer(), call) as on:
        got = await on.peer.packets(60)
    sequence = [(packet.sequence_number - got[0].sequence_number) & 0xFFFF for packet in got]
    assert sequence == list(range(60))
    steps = {(b.timestamp - a.timestamp) & 0xFFFFFFFF for a, b in pairwise(got)}
    assert all(step % 960 == 0 for step in steps)
    decoder = OpusDecoder(RATE)
    heard = np.concatenate([decoder.decode(packet.payload) for packet in got])
    said = np.concatenate(call.pulled)
    assert lag(heard, said, 4000, 8000) == lag(heard, said, 8000, 8000)


async def test_a_flush_reaches_the_wire_with_the_next_frame() -> None:
    call = RecordingCall(frames_of(voiced(20)))
    call.speaking = True
    async with connected(Peer(), call) as on:
        await on.peer.packets(10)
        call.speaking = False  # the flush: from here on pull gives silence
        spoken = len(call.pulled)
        got = await on.peer.packets(spoken + 20)
        decoder = OpusDecoder(RATE)
        loud = [index for index, packet in enumerate(got)
                if np.abs(decoder.decode(packet.payload).astype(int)).max() > 500]
        assert max(loud) <= spoken  # one more: the codec's look-ahead spills into the next frame


async def test_the_answer_asks_for_fec_and_speaks_only_opus() -> None:
    async with connected(Peer()) as on:
        lines = on.answer.splitlines()
        audio = next(line for line in lines if line.startswith("m=audio"))
        payload_type = audio.split()[3]
        assert len(audio.split()) == 4
        assert f"a=rtpmap:{payload_type} opus/48000/2" in lines
        assert f"a=fmtp:{payload_type} minptime=10;useinbandfec=1" in lines
        assert any(line.startswith("a=candidate:") for line in lines)
        assert not any("usedtx" in line for line in lines)


async def test_receiver_reports_tell_the_peer_of_its_losses() -> None:
    async with connected(Peer(encoded(SOUND), fate=ten_percent_lost_some_swapped)) as on:
        on.peer.track.start.set()

        async def lost() -> int:
            stats = await on.peer.pc.getStats()
            return sum(getattr(entry, "packetsLost", 0) for entry in stats.values()
                       if entry.type == "remote-inbound-rtp")

        for _ in range(200):
            if await lost():
                return
            await asyncio.sleep(0.05)
        pytest.fail("the peer was never told")


async def test_a_caller_who_is_not_expected_to_open_a_channel_is_connected_at_once(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webrtc, "CHANNEL_WAIT_S", 3600.0)
    async with connected(Peer(channel=None)) as on:
        assert on.call.connections == 1


async def test_a_call_begins_without_its_channel_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webrtc, "CHANNEL_WAIT_S", 0.05)
    async with connected(Peer(channel="something-else")) as on:
        assert on.call.connections == 1


async def test_messages_sent_before_the_channel_opens_arrive_first_and_in_order() -> None:
    peer, call, transport = Peer(), RecordingCall(), WebRtcTransport()
    answer = await transport.accept(await peer.offer(), call)
    transport.send("one")
    transport.send("two")
    await peer.answered(answer)
    await call.until(lambda: call.connections > 0)
    transport.send("three")
    await peer.until(lambda: len(peer.messages) == 3)
    assert peer.channel is not None
    peer.channel.send("hello")
    peer.channel.send(b"not text")
    peer.channel.send("again")
    await call.until(lambda: len(call.messages) == 2)
    assert peer.messages == ["one", "two", "three"]
    assert call.messages == ["hello", "again"]
    assert call.connections == 1
    await transport.close()
    await peer.close()


async def test_further_media_sections_are_answered_inactive_and_start_nothing() -> None:
    peer = Peer()
    peer.pc.addTransceiver("video", direction="sendrecv")
    threads = threading.active_count()
    async with connected(peer) as on:
        sections = on.answer.split("m=")
        video = next(section for section in sections if section.startswith("video"))
        assert "a=inactive" in video
        await on.peer.packets(5)
        assert threading.active_count() == threads


@pytest.mark.parametrize("end", ["hang_up", "channel", "vanish", "close", "fault"])
async def test_every_end_is_told_once(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if end == "vanish":
        monkeypatch.setattr(webrtc, "LOST_AFTER_S", 0.3)
        monkeypatch.setattr(webrtc, "_WATCH_S", 0.05)
    peer = Peer(encoded(SOUND))
    peer.track.start.set()
    async with connected(peer) as on:
        if end == "hang_up":
            await peer.close()
        elif end == "channel":
            assert peer.channel is not None
            peer.channel.close()
        elif end == "vanish":
            peer.vanish()
        elif end == "close":
            await on.transport.close()
        else:
            def broken() -> Pcm:
                raise ValueError("no frame")

            monkeypatch.setattr(on.call, "pull", broken)
        await on.call.until(lambda: bool(on.call.reasons))
        pulled = len(on.call.pulled)
        fed = len(on.call.fed)
        await on.transport.close()
        await on.transport.close()
        assert len(on.call.pulled) == pulled
        assert len(on.call.fed) == fed
        wanted = {"hang_up": "hung up", "channel": "hung up", "vanish": "lost", "close": "closed",
                  "fault": "media fault"}
        assert on.call.reasons == [wanted[end]]


async def test_a_caller_who_never_connects_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webrtc, "CONNECT_TIMEOUT_S", 0.05)
    peer, call, transport = Peer(), RecordingCall(), WebRtcTransport()
    await transport.accept(await peer.offer(), call)
    await call.until(lambda: bool(call.reasons))
    await transport.close()
    await peer.close()
    assert call.reasons == ["never connected"]
    assert call.connections == 0


def test_media_works_on_this_machine_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert webrtc.check_media() == ""
    monkeypatch.setattr(webrtc, "get_host_addresses", lambda use_ipv4, use_ipv6: [])
    assert "network interface" in webrtc.check_media()


async def test_without_an_address_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    peer, call, transport = Peer(), RecordingCall(), WebRtcTransport()
    offer = await peer.offer()
    monkeypatch.setattr(ice, "get_host_addresses", lambda use_ipv4, use_ipv6: [])
    with pytest.raises(NoAddress):
        await transport.accept(offer, call)
    await peer.close()
    assert call.reasons == []


async def test_a_refused_offer_leaves_nothing_behind_and_ends_no_call() -> None:
    before = census()
    call, transport = RecordingCall(), WebRtcTransport()
    with pytest.raises(BadOffer):
        await transport.accept("v=0\r\n", call)
    await transport.close()
    assert call.reasons == []
    assert census() == before


def census() -> tuple[int, int, int]:
    """Tasks, threads and open files of this process."""
    return len(asyncio.all_tasks()), threading.active_count(), len(os.listdir("/proc/self/fd"))


async def test_twenty_calls_leave_no_task_thread_or_socket() -> None:
    async def call_once(index: int) -> None:
        async with connected(Peer(encoded(SOUND[:RATE // 2]))) as on:
            on.peer.track.start.set()
            await on.peer.packets(3)
            if index % 2:
                await on.peer.close()
                await on.call.until(lambda: bool(on.call.reasons))

    await call_once(0)
    await asyncio.sleep(0)
    before = census()
    for start in range(0, 20, 5):
        await asyncio.gather(*(call_once(start + index) for index in range(5)))
    await asyncio.sleep(0)
    assert census() == before


async def test_a_call_ended_while_it_is_answered_is_not_answered() -> None:
    peer, call, transport = Peer(), RecordingCall(), WebRtcTransport()
    offer = await peer.offer()
    accepting = asyncio.ensure_future(transport.accept(offer, call))
    await asyncio.sleep(0)
    await transport.close()
    with pytest.raises(RuntimeError):
        await accepting
    await peer.close()
    assert call.reasons == []
