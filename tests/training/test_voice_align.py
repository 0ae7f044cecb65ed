"""The measure of words left out, said twice or cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Pcm
from training.voice.align import FARTHEST, Aligner, cmu_phones, detours, graph
from training.voice.voices import Source, Trained


@pytest.mark.parametrize(("path", "count", "wrong"), [
    ([0, 1, 2, 3], 4, {}),
    ([0, 2, 3], 4, {"skipped": 1}),
    ([3], 4, {"skipped": 3}),
    ([0, 1, 1, 2, 3], 4, {"repeated": 1}),
    ([0, 1, 0, 1, 2, 3], 4, {"repeated": 1}),
    ([0, 1], 4, {"stopped early": 1}),
    ([], 4, {"stopped early": 1}),
    ([0, 2, 2], 4, {"skipped": 1, "repeated": 1, "stopped early": 1}),
])
def test_what_is_wrong_with_a_path_is_counted_by_kind(path: Sequence[int], count: int, wrong: dict[str, int]) -> None:
    assert detours(path, count) == wrong


@given(st.integers(1, 12))
def test_only_the_straight_path_is_free(count: int) -> None:
    arcs = graph([f"w{i}" for i in range(count)])
    free = [arc for arc in arcs if arc[2] == 1.0]
    assert free == [(i, i + 1, 1.0, f"w{i}") for i in range(count)]
    # An arc that says word i leads to the state behind it, wherever it comes from.
    assert all(arc[3] == f"w{arc[1] - 1}" and abs(arc[0] + 1 - arc[1]) <= FARTHEST for arc in arcs if len(arc) == 4)
    assert {arc[0] for arc in arcs if len(arc) == 3} == set(range(1, count))


@pytest.mark.component
@pytest.mark.parametrize("make", [Source, Trained])
def test_a_word_left_out_doubled_or_missing_at_the_end_is_found(make: Callable[[], Source | Trained]) -> None:
    words = "The hospital is surrounded by a beautiful park"
    say, aligner = make().say, Aligner()
    wanted = [cmu_phones(word) for word, _ in Trained().read(words)]

    def found(text: str) -> set[str]:
        sound: Pcm = say(text)
        return set(detours(aligner.path(sound, wanted), len(wanted)))

    assert found(words) == set()
    assert "skipped" in found("The is surrounded by a beautiful park")
    assert "repeated" in found("The hospital is surrounded surrounded by a beautiful park")
    assert "stopped early" in found("The hospital is surrounded by a")
