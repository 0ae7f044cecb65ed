"""A talker that has lost its thread is noticed, and one that speaks is left alone."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.minicpmo.guard import CodeGuard, GuardOptions

SILENCE = 7
OPTIONS = GuardOptions(codes=20, period=5)


def lost(codes: list[int], *, words: bool = True, at_once: int = 1) -> list[tuple[int, str]]:
    """After how many codes it says what, given so many codes at once."""
    guard = CodeGuard(OPTIONS, SILENCE)
    said = []
    for start in range(0, len(codes), at_once):
        how = guard.watch(codes[start:start + at_once], words=words)
        if how is not None:
            said.append((min(start + at_once, len(codes)), how))
    return said


@given(st.lists(st.integers(8, 1000), min_size=1, max_size=5, unique=True))
def test_a_loop_of_any_length_up_to_the_longest_is_noticed_once_it_has_gone_on_for_long_enough(loop: list[int]) -> None:
    assert lost(loop * 25)[0] == (len(loop) + OPTIONS.codes, "loop")


def test_a_longer_loop_is_not_looked_for() -> None:
    assert lost([*range(10, 16)] * 20) == []


def test_silence_is_noticed_where_there_are_words_to_say_and_only_there() -> None:
    assert lost([1, 2, *[SILENCE] * 25]) == [(2 + OPTIONS.codes, "silence")]
    assert lost([SILENCE] * 200, words=False) == []


def test_a_pause_for_want_of_words_does_not_count_as_silence_when_they_come() -> None:
    guard = CodeGuard(OPTIONS, SILENCE)
    assert guard.watch([SILENCE] * 100, words=False) is None
    assert guard.watch([SILENCE] * (OPTIONS.codes - 1), words=True) is None
    assert guard.watch([SILENCE], words=True) == "silence"


def test_a_sound_that_is_held_and_pauses_between_words_are_speech() -> None:
    dice = random.Random(1)
    codes: list[int] = []
    for _ in range(50):
        codes += [*(dice.randrange(8, 1000) for _ in range(10)), *[dice.randrange(8, 1000)] * 15, *[SILENCE] * 15]
    assert lost(codes) == []


@given(st.lists(st.sampled_from([SILENCE, 1, 2]), max_size=200), st.integers(1, 30))
def test_what_is_said_does_not_depend_on_how_codes_come(codes: list[int], at_once: int) -> None:
    alone = [how for _, how in lost(codes)]
    together = [how for _, how in lost(codes, at_once=at_once)]
    if at_once < OPTIONS.codes:
        assert len(together) <= len(alone)
        assert bool(together) == bool(alone)


def test_after_a_loop_was_noticed_it_is_counted_anew() -> None:
    codes = [3] * 100
    found = [count for count, _ in lost(codes)]
    assert found[0] == 1 + OPTIONS.codes
    assert all(later - earlier >= OPTIONS.codes for earlier, later in pairwise(found))
