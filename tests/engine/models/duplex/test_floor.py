"""Who may speak: turn mode, and a silence that is a fault."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Unit
from duologue.engine.models.duplex.floor import Floor, FloorOptions, Rule

OPTIONS = FloorOptions(respond_within=3, unanswered_units=4)


def unit(speech: float = 0.0) -> Unit:
    return Unit(0, np.zeros(1, np.int16), speech)


def rules(floor: Floor, count: int, *, first: int = 0) -> list[Rule]:
    """The rules of the next units, in all of which the thinker listens."""
    made = []
    for index in range(first, first + count):
        made.append(floor.rule(index, open=False))
        floor.answered(unit(), speaks=False)
    return made


def test_a_session_only_listens_at_first() -> None:
    assert rules(Floor(OPTIONS, 2, auto=True), 4) == [Rule.LISTEN, Rule.LISTEN, Rule.FREE, Rule.FREE]


def test_in_turn_mode_it_listens_until_it_is_asked_and_must_speak_by_the_last_unit() -> None:
    floor = Floor(OPTIONS, 2, auto=False)
    assert rules(floor, 5) == [Rule.LISTEN] * 5
    floor.respond()
    assert rules(floor, 4) == [Rule.FREE, Rule.FREE, Rule.SPEAK, Rule.SPEAK]
    floor.answered(unit(), speaks=True)
    assert floor.rule(9, open=True) is Rule.FREE
    assert floor.rule(9, open=False) is Rule.LISTEN


def test_who_is_not_asked_any_more_need_not_speak() -> None:
    floor = Floor(OPTIONS, 0, auto=False)
    floor.respond()
    floor.cancel()
    assert rules(floor, 4) == [Rule.LISTEN] * 4


def test_a_callers_unanswered_speech_is_told_once() -> None:
    floor = Floor(OPTIONS, 0, auto=True)

    def told(*speech: float, speaks: bool = False) -> list[bool]:
        return [floor.answered(unit(each), speaks=speaks) for each in speech]

    # Silence is none as long as nobody has spoken, nor while somebody does.
    assert not any(told(*[0.0] * 10, *[0.9] * 10))
    assert told(0, 0, 0, 0, 0, 0) == [False, False, False, True, False, False]
    assert told(0.9, 0, 0, 0, 0) == [False, False, False, False, True]
    assert not any((*told(0.9, 0), *told(0, speaks=True), *told(*[0.0] * 10)))


def test_silence_by_order_is_no_fault() -> None:
    floor = Floor(OPTIONS, 0, auto=False)
    assert not any(floor.answered(unit(each), speaks=False) for each in (0.9, *[0.0] * 10))
    never = Floor(FloorOptions(unanswered_units=0), 0, auto=True)
    assert not any(never.answered(unit(each), speaks=False) for each in (0.9, *[0.0] * 10))


@given(st.lists(st.sampled_from(["ask", "cancel", "listens", "speaks"]), max_size=40), st.booleans())
def test_whoever_is_asked_is_forced_in_time_and_nobody_else_is(events: list[str], auto: bool) -> None:
    floor, asked = Floor(OPTIONS, 0, auto=auto), None
    for index, event in enumerate(events):
        if event == "ask":
            floor.respond()
            asked = 0
        elif event == "cancel":
            floor.cancel()
            asked = None
        else:
            rule = floor.rule(index, open=False)
            assert (rule is Rule.SPEAK) == (asked is not None and asked >= OPTIONS.respond_within - 1)
            assert (rule is Rule.LISTEN) == (asked is None and not auto)
            speaks = event == "speaks"
            floor.answered(unit(), speaks=speaks)
            asked = None if speaks or asked is None else asked + 1
