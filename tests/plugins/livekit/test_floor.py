"""What a framework that takes every start of speech for an interruption is told of the caller."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.plugins.livekit.floor import Floor, Signal

STATES = ("listening", "thinking", "speaking", "ducked", "paused")


def play(floor: Floor, *script: str) -> list[Signal]:
    """Run a script of states, ``started``, ``stopped``, ``cut``, ``replying``, ``lost``; gives all signals."""
    told: list[Signal] = []
    for step in script:
        match step:
            case "started" | "stopped":
                told += floor.heard(step)
            case "cut":
                told += floor.cut()
            case "replying":
                told += floor.replying()
            case "lost":
                told += floor.lost()
            case state:
                told += floor.moved(state)
    return told


@pytest.mark.parametrize(("script", "told"), [
    (("started", "stopped"), ["started", "stopped"]),
    (("speaking", "paused", "started", "stopped", "speaking"), []),
    (("speaking", "paused", "started", "cut"), ["started"]),
    (("speaking", "paused", "started", "cut", "listening", "stopped"), ["started", "stopped"]),
    (("speaking", "paused", "started", "stopped", "cut", "listening"), ["started", "stopped"]),
    (("speaking", "ducked", "started", "speaking", "stopped"), []),
    (("speaking", "ducked", "started", "speaking", "cut"), ["started"]),
    (("speaking", "ducked", "started", "stopped", "speaking", "cut"), ["started", "stopped"]),
    (("speaking", "paused", "started", "listening"), ["started"]),
    (("started", "thinking", "replying", "speaking", "stopped"), ["started", "stopped"]),
    (("speaking", "paused", "started", "lost", "stopped"), []),
    (("started", "lost", "started"), ["started", "stopped", "started"]),
], ids=["a turn", "a nod", "an interruption", "its end", "a short interruption", "echo", "speech over echo's verdict",
        "words understood late", "the reply ran out", "a reply over speech", "lost in speech", "speech after a loss"])
def test_speech_over_a_reply_is_told_when_it_has_ended_the_reply(script: tuple[str, ...], told: list[Signal]) -> None:
    assert play(Floor(), *script) == told


@given(st.lists(st.sampled_from([*STATES, "started", "stopped", "cut", "replying", "lost"])))
def test_starts_and_stops_alternate_and_every_cut_is_told(script: list[str]) -> None:
    floor = Floor()
    told: list[Signal] = []
    for step in script:
        fresh = play(floor, step)
        if step == "cut":
            assert "started" in told + fresh
        told += fresh
    assert told == ["started", "stopped"] * (len(told) // 2) + ["started"] * (len(told) % 2)


@given(st.lists(st.sampled_from(["started", "stopped", "thinking", "speaking", "ducked", "paused"])))
def test_nothing_is_told_while_a_reply_goes_on(script: list[str]) -> None:
    assert play(Floor(), "speaking", *script) == []
