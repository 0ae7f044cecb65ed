"""Whose packets are let in, and where ours go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sip.media.source_guard import PROBATION, SILENT_S, SourceGuard
from tests.agent.media import steady

NAMED, NATTED, STRANGER = ("192.0.2.9", 4000), ("198.51.100.7", 61_000), ("203.0.113.66", 5)


def packet(number: int, ssrc: int = 1) -> RtpPacket:
    return RtpPacket(0, number & 0xFFFF, 160 * number, ssrc, b"")


def guard() -> SourceGuard:
    made = SourceGuard()
    made.named(NAMED)
    return made


def test_before_anything_came_ours_go_where_the_sdp_says() -> None:
    assert guard().source == NAMED


def test_the_source_that_the_sdp_names_is_let_in_at_once() -> None:
    assert guard().admit(NAMED, packet(1), 0.0, authentic=False)


def test_a_source_behind_a_nat_is_latched_to_once_it_shows_a_stream() -> None:
    made = guard()
    let_in = [made.admit(NATTED, packet(65_534 + number), 0.02 * number, authentic=False) for number in range(5)]
    assert let_in == [False] * (PROBATION - 1) + [True] * (5 - PROBATION + 1)
    assert made.source == NATTED


def test_nobody_is_let_in_beside_a_source_that_is_alive() -> None:
    made = guard()
    for number in range(100):
        now = 0.02 * number
        assert made.admit(NAMED, packet(number), now, authentic=False)
        assert not made.admit(STRANGER, packet(number, ssrc=2), now, authentic=False)
    assert made.source == NAMED


def test_a_source_that_fell_silent_may_be_replaced_by_a_stream() -> None:
    made = guard()
    made.admit(NAMED, packet(1), 0.0, authentic=False)
    later = SILENT_S + 0.1
    assert [made.admit(NATTED, packet(number), later, authentic=False) for number in range(3)] == [False, False, True]


def test_who_proves_itself_by_srtp_may_come_from_anywhere() -> None:
    made = guard()
    made.admit(NAMED, packet(1), 0.0, authentic=False)
    assert made.admit(NATTED, packet(2), 0.02, authentic=True)
    assert made.source == NATTED


def test_another_address_in_the_sdp_is_gone_to_at_once() -> None:
    made = guard()
    made.admit(NAMED, packet(1), 0.0, authentic=False)
    made.named(NATTED)
    assert made.source == NATTED
    made.named(None)
    assert made.source is None


@steady
@given(st.lists(st.tuples(st.sampled_from([NATTED, STRANGER]), st.integers(0, 9)), max_size=40))
def test_scattered_packets_never_make_a_stream(packets: list[tuple[tuple[str, int], int]]) -> None:
    made = guard()
    run: list[tuple[tuple[str, int], int]] = []
    for source, number in packets:
        expected = (source, number) == (run[-1][0], run[-1][1] + 1) if run else False
        run = [*run, (source, number)] if expected else [(source, number)]
        let_in = made.admit(source, packet(number), 0.0, authentic=False)
        if let_in:
            assert len(run) >= PROBATION
            return
        assert len(run) < PROBATION
