"""Cutting samples into units."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.media.units import MAX_AHEAD, Unitizer
from duologue.engine import Unit
from tests.agent.media import steady

pushes = st.lists(st.tuples(st.integers(0, 700), st.booleans(), st.booleans()), max_size=20)


def facts(unit: Unit) -> tuple[int, list[int], float, int, int]:
    return unit.index, unit.pcm.tolist(), unit.speech, unit.concealed, unit.agent_audible


def test_units_are_the_stream_cut_into_equal_pieces() -> None:
    unitizer = Unitizer(1280)
    stream = np.arange(4000).astype(np.int16)
    units = unitizer.push(stream)
    assert [unit.index for unit in units] == [0, 1, 2]
    assert np.array_equal(np.concatenate([unit.pcm for unit in units]), stream[:3840])
    assert unitizer.position == 4000


def test_concealed_and_audible_samples_are_counted_in_the_unit_they_fall_into() -> None:
    units = Unitizer(100).push(np.zeros(300, np.int16), concealed=150, agent_audible=220)
    assert [(unit.concealed, unit.agent_audible) for unit in units] == [(100, 100), (50, 100), (0, 20)]


def test_a_units_speech_is_the_highest_of_the_windows_that_end_in_it() -> None:
    unitizer = Unitizer(1000)
    for probability, upto in ((0.2, 512), (0.9, 1000), (0.1, 1001), (0.3, 1500), (0.7, 2500)):
        unitizer.note_speech(probability, upto)
    assert [unit.speech for unit in unitizer.push(np.zeros(3000, np.int16))] == [0.9, 0.3, 0.7]


def test_a_unit_in_which_no_window_ends_has_the_speech_of_the_last_one() -> None:
    unitizer = Unitizer(100)
    unitizer.note_speech(0.9, 10)
    unitizer.note_speech(0.4, 90)
    assert [unit.speech for unit in unitizer.push(np.zeros(300, np.int16))] == [0.9, 0.4, 0.4]


@pytest.mark.parametrize("upto", [1000, 999, 1200, 1000 + MAX_AHEAD + 1])
def test_windows_out_of_order_or_out_of_reach_are_refused(upto: int) -> None:
    unitizer = Unitizer(400)
    unitizer.push(np.zeros(1000, np.int16))
    if upto == 1200:
        unitizer.note_speech(0.5, 1200)
    with pytest.raises(ValueError, match=str(upto)):
        unitizer.note_speech(0.5, upto)


def test_a_unit_without_samples_is_refused() -> None:
    with pytest.raises(ValueError, match="0"):
        Unitizer(0)


@steady
@given(parts=pushes, cuts=st.lists(st.integers(1, 400), min_size=1), unit=st.integers(1, 2000))
def test_units_do_not_depend_on_how_the_stream_was_cut(parts: list[tuple[int, bool, bool]], cuts: list[int],
                                                       unit: int) -> None:
    total = sum(size for size, _, _ in parts)
    stream = (np.arange(total) * 7919).astype(np.int16)
    whole, pieces = Unitizer(unit), Unitizer(unit)
    for unitizer in (whole, pieces):
        for upto in range(512, total + 1, 512):
            unitizer.note_speech(upto * 7919 % 100 / 100, upto)
    expected: list[Unit] = []
    got: list[Unit] = []
    at = step = 0
    for size, concealed, audible in parts:
        expected += whole.push(stream[at:at + size], size * concealed, size * audible)
        end = at + size
        while at < end:
            count = min(cuts[step % len(cuts)], end - at)
            got += pieces.push(stream[at:at + count], count * concealed, count * audible)
            at, step = at + count, step + 1
    assert [facts(unit) for unit in got] == [facts(unit) for unit in expected]
    assert len(got) == total // unit
