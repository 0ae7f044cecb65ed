"""One stream each way on real sockets: SRTP against libsrtp itself, RTCP, latching, ports."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pylibsrtp
import pytest
from aiortc.rtp import RtcpByePacket, RtcpPacket, RtcpReceiverInfo, RtcpRrPacket, RtcpSdesPacket, RtcpSrPacket

from duologue.agent.transports.rtp import RtpPacket, read_rtp, write_rtp
from duologue.agent.transports.sip.media.negotiation import CODECS, Agreement, Keys, Peer, Suite
from duologue.agent.transports.sip.media.rtp_session import RtpSession
from duologue.agent.transports.sip.media.udp_ports import NoPorts, PortPair
from tests.agent.transports.peer import Recorder

pytestmark = pytest.mark.component

HOST = "127.0.0.1"
PORTS = (25_000, 29_999)


class Phone:
    """The other side: two plain sockets."""

    def __init__(self) -> None:
        self.media, self.control = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        for each in (self.media, self.control):
            each.bind((HOST, 0))
            each.setblocking(False)

    async def receive(self, sock: socket.socket) -> bytes:
        async with asyncio.timeout(5):
            return await asyncio.get_running_loop().sock_recv(sock, 2048)

    def close(self) -> None:
        self.media.close()
        self.control.close()


class Rig(Recorder):
    """A session and its phone; ``now`` is the session's clock."""

    def __init__(self, phone: Phone, keys: Keys | None, *, mux: bool = False) -> None:
        super().__init__()
        self.now = 100.0
        self.phone = phone
        self.taken: list[RtpPacket] = []
        self.lost: list[int] = []
        self.faults: list[Exception] = []
        self.ports = PortPair(HOST, PORTS)
        self.session = RtpSession(self.ports, self._take, self.lost.append, self.faults.append, lambda: self.now)
        address, control = (each.getsockname() for each in (phone.media, phone.control))
        self.agreement = Agreement(Peer(True, True, address, address if mux else control, mux), CODECS["pcmu"], 0, 0,
                                   keys=keys)
        self.session.apply(self.agreement, frozenset({0}))

    def _take(self, packet: RtpPacket) -> None:
        self.taken.append(packet)
        self.changed()
        if packet.payload == b"poison":
            raise RuntimeError("what is in it cannot be borne")

    def send(self, data: bytes, sock: socket.socket | None = None, port: int = 0) -> None:
        (sock or self.phone.media).sendto(data, (HOST, port or self.ports.port))


@asynccontextmanager
async def rig(keys: Keys | None = None, *, mux: bool = False) -> AsyncIterator[Rig]:
    phone = Phone()
    made = Rig(phone, keys, mux=mux)
    try:
        yield made
    finally:
        made.session.close()
        phone.close()


def packet(number: int, payload: bytes = b"\xff" * 160, ssrc: int = 7, kind: int = 0) -> RtpPacket:
    return RtpPacket(kind, number, 160 * number, ssrc, payload)


async def test_packets_go_both_ways() -> None:
    async with rig() as made:
        made.send(write_rtp(packet(1)))
        await made.until(lambda: made.taken == [packet(1)])
        made.session.send(0, 0, b"first", marker=True)
        made.session.send(0, 160, b"second")
        data = [await made.phone.receive(made.phone.media) for _ in range(2)]
        first, second = map(read_rtp, data)
        assert [each[1] >> 7 for each in data] == [1, 0]
        assert (second.sequence_number - first.sequence_number, second.timestamp - first.timestamp) == (1, 160)
        assert (first.payload, second.payload, second.ssrc) == (b"first", b"second", first.ssrc)


@pytest.mark.parametrize("suite", ["AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"])
async def test_srtp_is_libsrtps(suite: Suite) -> None:
    keys = Keys(suite, os.urandom(30), os.urandom(30))
    profile = (pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_80 if suite.endswith("80")
               else pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_32)
    theirs_out = pylibsrtp.Session(pylibsrtp.Policy(
        key=keys.theirs, ssrc_type=pylibsrtp.Policy.SSRC_ANY_OUTBOUND, srtp_profile=profile))
    theirs_in = pylibsrtp.Session(pylibsrtp.Policy(
        key=keys.ours, ssrc_type=pylibsrtp.Policy.SSRC_ANY_INBOUND, srtp_profile=profile))
    async with rig(keys) as made:
        protected = theirs_out.protect(write_rtp(packet(1)))
        made.send(write_rtp(packet(9)))  # in the clear
        made.send(protected[:-1] + bytes([protected[-1] ^ 1]))  # forged
        made.send(protected)
        made.send(protected)  # replayed
        made.send(theirs_out.protect(write_rtp(packet(2))))
        await made.until(lambda: len(made.taken) == 2)
        assert made.taken == [packet(1), packet(2)]
        made.session.send(0, 0, b"secret")
        data = await made.phone.receive(made.phone.media)
        assert b"secret" not in data
        assert read_rtp(theirs_in.unprotect(data)).payload == b"secret"
        made.now += 10
        made.session.tick()
        assert RtcpPacket.parse(theirs_in.unprotect_rtcp(await made.phone.receive(made.phone.control)))


async def test_a_hold_keeps_the_srtp_context_so_that_no_packet_is_taken_twice() -> None:
    keys = Keys("AES_CM_128_HMAC_SHA1_80", os.urandom(30), os.urandom(30))
    out = pylibsrtp.Session(pylibsrtp.Policy(key=keys.theirs, ssrc_type=pylibsrtp.Policy.SSRC_ANY_OUTBOUND))
    async with rig(keys) as made:
        old = out.protect(write_rtp(packet(1)))
        made.send(old)
        await made.until(lambda: len(made.taken) == 1)
        made.session.apply(replace(made.agreement, peer=replace(made.agreement.peer, hears=False)), frozenset({0}))
        made.send(old)
        made.send(out.protect(write_rtp(packet(2))))
        await made.until(lambda: len(made.taken) == 2)
        assert [each.sequence_number for each in made.taken] == [1, 2]


@pytest.mark.parametrize("mux", [False, True])
async def test_reports_tell_what_was_sent_and_what_was_lost(mux: bool) -> None:
    async with rig(mux=mux) as made:
        for number in (1, 2, 4):
            made.send(write_rtp(packet(number)))
        await made.until(lambda: len(made.taken) == 3)
        made.session.send(0, 0, b"x" * 160)
        assert await made.phone.receive(made.phone.media)
        made.now += 10
        made.session.tick()
        made.session.tick()  # no second one yet
        data = await made.phone.receive(made.phone.media if mux else made.phone.control)
        report, names = RtcpPacket.parse(data)
        assert isinstance(report, RtcpSrPacket)
        assert isinstance(names, RtcpSdesPacket)
        assert (report.sender_info.packet_count, report.sender_info.octet_count) == (1, 160)
        about, = report.reports
        assert (about.ssrc, about.packets_lost, about.highest_sequence) == (7, 1, 4)
        assert names.chunks[0].items[0][0] == 1  # CNAME
        made.session.close()
        data = await made.phone.receive(made.phone.media if mux else made.phone.control)
        assert isinstance(RtcpPacket.parse(data)[-1], RtcpByePacket)


async def test_loss_that_the_other_side_reports_is_passed_on() -> None:
    async with rig() as made:
        made.session.send(0, 0, b"x")
        ours = read_rtp(await made.phone.receive(made.phone.media)).ssrc
        report = RtcpRrPacket(7, [RtcpReceiverInfo(ours, 64, 3, 100, 0, 0, 0), RtcpReceiverInfo(1, 128, 3, 1, 0, 0, 0)])
        made.send(b"\x80\xc8\x00", made.phone.control, made.ports.port + 1)  # no report at all
        made.send(bytes(report), made.phone.control, made.ports.port + 1)
        for _ in range(100):
            if made.lost:
                break
            await asyncio.sleep(0.01)
        assert made.lost == [25]


async def test_strangers_and_unknown_payload_types_are_not_let_in() -> None:
    async with rig() as made:
        stranger = Phone()
        try:
            made.send(write_rtp(packet(1)))
            await made.until(lambda: len(made.taken) == 1)
            for number in range(10):
                made.send(write_rtp(packet(number, ssrc=8)), stranger.media)
                made.send(write_rtp(packet(number, kind=99)))
                made.send(b"\x16nonsense")
            made.send(write_rtp(packet(2)))
            await made.until(lambda: len(made.taken) == 2)
            assert made.taken == [packet(1), packet(2)]
        finally:
            stranger.close()


async def test_media_follows_a_caller_behind_a_nat() -> None:
    async with rig() as made:
        elsewhere = Phone()
        try:
            for number in range(4):
                made.send(write_rtp(packet(number)), elsewhere.media)
            await made.until(lambda: len(made.taken) == 2)
            made.session.send(0, 0, b"over here")
            assert read_rtp(await elsewhere.receive(elsewhere.media)).payload == b"over here"
        finally:
            elsewhere.close()


async def test_what_cannot_be_borne_ends_nothing_but_its_call() -> None:
    async with rig() as made:
        made.send(write_rtp(packet(1, b"poison")))
        await made.until(lambda: len(made.taken) == 1)
        await asyncio.sleep(0)
        assert [str(fault) for fault in made.faults] == ["what is in it cannot be borne"]


async def test_another_clock_is_another_source() -> None:
    async with rig() as made:
        made.session.send(0, 0, b"a")
        before = read_rtp(await made.phone.receive(made.phone.media))
        made.session.apply(replace(made.agreement, codec=CODECS["opus"]), frozenset({96}))
        made.session.send(96, 0, b"b")
        assert read_rtp(await made.phone.receive(made.phone.media)).ssrc != before.ssrc


async def test_ports_come_in_pairs_and_run_out() -> None:
    pairs = [PortPair(HOST, (24_001, 24_005)) for _ in range(1)]
    assert pairs[0].port in (24_002, 24_004)
    other = 24_006 - pairs[0].port + 24_000
    pairs.append(PortPair(HOST, (24_001, 24_005)))
    assert pairs[1].port == other
    with pytest.raises(NoPorts, match="24001-24005"):
        PortPair(HOST, (24_001, 24_005))
    pairs[0].close()
    pairs[0].close()
    again = PortPair(HOST, (24_001, 24_005))
    assert again.port == 24_006 - other + 24_000
    for pair in (again, pairs[1]):
        pair.close()
    with pytest.raises(NoPorts, match=r"192\.0\.2\.1"):
        PortPair("192.0.2.1", PORTS)


