from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from duologue.engine.runners.base import Tokens
from duologue.engine.runners.log import Grammar, Log
from duologue.engine.runners.window import Slide, Window, WindowConfig


def test_nothing_is_forgotten_below_the_high_mark_and_then_down_to_the_low_one() -> None:
    window = Window(WindowConfig(high=100, low=60), 200)
    assert window.slide(10, 0, 0, [(10, 2)] * 8, 10) is None
    assert window.slide(10, 0, 0, [(10, 2)] * 9, 10) == Slide(5, 0)


def test_what_stays_of_the_text_is_counted_in() -> None:
    window = Window(WindowConfig(rule="text", high=100, low=60, text_tokens=8), 200)
    # 10 + (2 + 8) + 3 * 10 + 10 = 60; before, with 2 entries more and their text, it was over.
    assert window.slide(10, 2, 0, [(10, 2)] * 9, 10) == Slide(6, 8)


def test_text_gives_way_when_only_the_last_entry_is_left() -> None:
    window = Window(WindowConfig(rule="text", high=40, low=30, text_tokens=20), 40)
    assert window.slide(10, 2, 20, [(5, 5), (15, 0)], 2) == Slide(1, 1)


def test_marks_that_cannot_be_kept_are_refused() -> None:
    with pytest.raises(ValidationError, match="low"):
        WindowConfig(high=10, low=11)
    with pytest.raises(ValueError, match="the runner holds 99"):
        Window(WindowConfig(high=100), 99)
    with pytest.raises(ValueError, match=r"low is 100, but high is 99"):
        Window(WindowConfig(low=100), 99)
    assert (Window(WindowConfig(), 80).high, Window(WindowConfig(), 80).low) == (80, 70)


@given(st.sampled_from(["drop", "text"]), st.integers(0, 12), st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 8)), min_size=1, max_size=60))
def test_a_session_is_never_over_the_limit_its_prefix_stays_and_units_go_whole(
        rule: str, prefix: int, units: list[tuple[int, int]]) -> None:
    window = Window(WindowConfig.model_validate({"rule": rule, "high": 64, "low": 40, "text_tokens": 10}), 64)
    log = Log((Tokens((1,) * prefix),), Grammar(True, (9,), frozenset({7, 8}), ((5,), (6,))))
    room, slid_at = 12, []
    for number, (rows, text) in enumerate(units):
        log.append([Tokens((2,) * rows)])
        before = log.length
        slide = window.slide(log.prefix, 2, log.remembered, log.entries, room)
        if slide is not None:
            slid_at.append(number)
            log.forget(slide.drop, slide.text)
            assert log.length < before
        assert log.length + room <= 64
        log.answer([7, *[100 + number] * text, 8])
        flat = [id for piece in log.pieces() if isinstance(piece, Tokens) for id in piece.ids]
        assert flat[:prefix] == [1] * prefix
        assert log.next == number + 1
        # Of every unit that is left all is left.
        whole = [id for n in range(log.first, number + 1)
                 for id in [*[2] * units[n][0], 7, *[100 + n] * units[n][1], 8, 9]]
        assert flat[len(flat) - len(whole):] == whole
        assert len(flat) - len(whole) - prefix <= (12 if rule == "text" else 0)
    # The marks are 24 positions apart and a unit with its answer takes 23 at most.
    assert all(b > a + 1 for a, b in itertools.pairwise(slid_at))
