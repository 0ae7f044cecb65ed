from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.runners.lease import Grant, Leases, TooLong
from tests.engine.runners.fake_runner import capacity


def started(leases: Leases) -> list[Grant]:
    grants = []
    while (grant := leases.next()) is not None:
        grants.append(grant)
    return grants


def test_parked_sessions_that_fill_the_kv_give_way_the_longest_parked_first() -> None:
    # Left to itself, vLLM 0.32 waits for ever in this place: its paused sessions are never preempted.
    leases = Leases(capacity(positions=64, block=16))
    for session in "abcd":
        leases.ask(session, 16)
    started(leases)
    for session in "bacd":
        leases.park(session, 16)
    leases.ask("e", 30)
    assert started(leases) == [Grant("e", ("b", "a"))]


def test_parked_sessions_do_not_hold_the_slots() -> None:
    leases = Leases(capacity(max_sessions=2))
    for session in "ab":
        leases.ask(session, 16)
    started(leases)
    leases.park("a", 10)
    leases.park("b", 10)
    leases.ask("c", 16)
    assert started(leases) == [Grant("c", ("a",))]
    assert leases.holders == {"b", "c"}


def test_a_session_that_goes_on_keeps_what_it_holds() -> None:
    leases = Leases(capacity(positions=64, block=16, max_sessions=1))
    leases.ask("a", 40)
    started(leases)
    leases.park("a", 33)
    leases.ask("a", 64)
    assert started(leases) == [Grant("a", ())]
    assert leases.blocks == 4


def test_running_sessions_are_not_touched_and_who_waits_is_told_why() -> None:
    leases = Leases(capacity(positions=64, block=16, max_sessions=2))
    for session, positions in [("a", 40), ("b", 32), ("c", 1)]:
        leases.ask(session, positions)
    assert started(leases) == [Grant("a", ())]
    assert leases.why_waiting("b") == "3 of 4 KV blocks are set aside for running sessions, and it needs 2"
    # First come, first served: c would fit.
    assert leases.why_waiting("c") == "1 sessions wait before it"
    assert leases.why_waiting("a") == ""
    leases.park("a", 30)
    assert leases.why_waiting("b") == "it is about to start"
    assert started(leases) == [Grant("b", ()), Grant("c", ("a",))]
    leases.ask("d", 1)
    assert leases.why_waiting("d") == "all 2 session slots are running"


def test_a_session_that_can_never_fit_is_refused_with_the_reason() -> None:
    leases = Leases(capacity(positions=70, block=16, max_length=1000))
    with pytest.raises(TooLong, match=r"grow to 65 positions, and 64 are the most"):
        leases.ask("a", 65)
    assert Leases(capacity(max_length=50)).longest == 50


def test_who_leaves_gives_everything_back() -> None:
    leases = Leases(capacity(positions=64, block=16))
    for session in "abc":
        leases.ask(session, 32)
    started(leases)
    with pytest.raises(ValueError, match="has a segment"):
        leases.ask("a", 1)
    assert leases.cancel("c")
    assert not leases.cancel("a")
    leases.park("b", 32)
    leases.forget("a")
    leases.forget("b")
    assert (leases.blocks, leases.holders, leases.can_start) == (0, frozenset(), False)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 64), st.integers(0, 64)), max_size=60))
def test_budgets_hold_and_everybody_is_served(steps: list[tuple[str, int, int]]) -> None:
    limits = capacity(positions=96, block=16, max_length=64, max_sessions=3)
    leases = Leases(limits)
    running: dict[str, int] = {}
    parked: set[str] = set()
    waiting: list[str] = []
    for session, positions, end in steps:
        if session in running:
            leases.park(session, min(end, running.pop(session)))
            parked.add(session)
        elif session not in waiting:
            leases.ask(session, positions)
            waiting.append(session)
        asked = dict(zip(waiting, waiting, strict=True))
        for grant in started(leases):
            assert grant.session == waiting.pop(0)
            assert set(grant.evict) <= parked - {grant.session}
            parked -= {grant.session, *grant.evict}
            running[grant.session] = 1
        assert leases.blocks <= 6
        assert len(leases.holders) <= 3
        assert leases.holders == set(running) | parked
        assert running or not waiting, f"nobody runs, and these wait: {asked}"
