"""When a framework that takes every start of speech for an interruption is told of the caller's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.plugins.livekit.speech import Signal, Speech


def play(speech: Speech, *script: str) -> list[Signal]:
    """Run a script of started, stopped, the same over a reply, begins, over, lost; gives all signals."""
    told: list[Signal] = []
    for step in script:
        match step.split():
            case [("started" | "stopped") as signal, *over]:
                told += speech.heard(signal, replying=bool(over))
            case ["begins"]:
                told += speech.reply_begins()
            case ["over"]:
                told += speech.reply_is_over()
            case _:
                told += speech.lost()
    return told


@pytest.mark.parametrize(("script", "told"), [
    (("started", "stopped"), ["started", "stopped"]),
    (("begins", "started over_reply"), []),
    (("begins", "started over_reply", "over"), ["started"]),
    (("begins", "started over_reply", "over", "stopped"), ["started", "stopped"]),
    (("begins", "started over_reply", "stopped over_reply", "over"), ["started", "stopped"]),
    (("started", "begins", "stopped over_reply"), ["started", "stopped"]),
    (("begins", "started over_reply", "lost", "stopped"), []),
    (("started", "lost", "started"), ["started", "stopped", "started"]),
], ids=["a turn", "a reply about to be cut", "a cut reply", "speech after the cut", "speech before the cut is known",
        "a reply over speech", "a loss over a reply", "a loss in speech"])
def test_speech_that_cuts_a_reply_is_told_when_the_reply_is_over(script: tuple[str, ...], told: list[Signal]) -> None:
    assert play(Speech(), *script) == told


@given(st.lists(st.sampled_from(["started", "stopped", "started over_reply", "stopped over_reply", "begins", "over",
                                 "lost"])))
def test_starts_and_stops_alternate(script: list[str]) -> None:
    told = play(Speech(), *script)
    assert told == ["started", "stopped"] * (len(told) // 2) + ["started"] * (len(told) % 2)


@given(st.lists(st.sampled_from(["started", "stopped"])))
def test_after_a_reply_the_framework_believes_what_was_said_last(script: list[Signal]) -> None:
    speech = Speech()
    told = play(speech, "begins", *(f"{signal} over_reply" for signal in script), "over")
    assert told[-1:] == ([] if "started" not in script else script[-1:])
