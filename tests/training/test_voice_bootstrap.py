"""How sure a ratio of two voices' errors is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.voice.bootstrap import ratio_interval


def test_the_interval_is_about_that_of_the_delta_method() -> None:
    drawn = np.random.default_rng(7)
    others = drawn.integers(0, 4, 400)
    errors = np.maximum(0, others + drawn.integers(-1, 3, 400))
    ratio = errors.sum() / others.sum()
    deviation = (errors - ratio * others).std() / others.mean() / math.sqrt(400)
    low, high = ratio_interval(errors, others)
    # 1.645: the 95th percentile of a normal distribution.
    assert low == pytest.approx(ratio - 1.645 * deviation, abs=0.02)
    assert high == pytest.approx(ratio + 1.645 * deviation, abs=0.02)


def test_voices_that_err_in_the_same_sentences_have_a_certain_ratio() -> None:
    others = [0, 1, 3, 0, 2]
    assert ratio_interval([2 * error for error in others], others) == (2.0, 2.0)


def test_a_voice_without_errors_is_better_than_any_other() -> None:
    assert ratio_interval([0, 1, 1, 1], [0, 0, 0, 0])[1] == math.inf
    assert ratio_interval([0, 0], [1, 2]) == (0.0, 0.0)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=40))
def test_the_interval_holds_the_ratio_of_some_draw(pairs: list[tuple[int, int]]) -> None:
    low, high = ratio_interval([a for a, _ in pairs], [b for _, b in pairs])
    assert min(a / b for a, b in pairs) - 1e-9 <= low <= high <= max(a / b for a, b in pairs) + 1e-9
