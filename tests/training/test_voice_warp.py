"""The measure of what the voice leaves out or says twice, against its source."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duologue.engine.models.embedded.voice_format import CEPSTRA
from training.voice.align import DAMAGE
from training.voice.warp import LIMIT, Floats, Pair, aligned, compare

SHAPES = st.tuples(st.integers(1, 12), st.integers(1, 12))


@given(SHAPES.flatmap(lambda shape: arrays(np.float64, shape, elements=st.floats(0, 10))))
def test_an_alignment_goes_from_end_to_end_and_never_back(apart: Floats) -> None:
    path = aligned(apart)
    assert path[0] == (0, 0)
    assert path[-1] == (apart.shape[0] - 1, apart.shape[1] - 1)
    steps = {(i - before_i, j - before_j) for (before_i, before_j), (i, j) in pairwise(path)}
    assert steps <= {(1, 1), (1, 0), (0, 1)}


def said(*sounds: int) -> Floats:
    """20 frames for each sound, all of the same loudness; each sound is another point."""
    points = np.random.default_rng(0).normal(0, 1, (10, CEPSTRA))
    points[:, 0] = 5.0
    return np.repeat(points[list(sounds)], 20, axis=0)


@pytest.mark.parametrize(("sounds", "repeated", "skipped"), [
    ((0, 1, 2, 3, 4), False, False),
    ((0, 1, 2, 1, 2, 3, 4), True, False),
    ((0, 1, 3, 4), False, True),
    ((0, 1, 2, 3), False, True),
])
def test_long_runs_are_what_is_said_once_more_or_not_at_all(sounds: tuple[int, ...], repeated: bool,
                                                            skipped: bool) -> None:
    rng = np.random.default_rng(1)
    wanted, got = said(0, 1, 2, 3, 4), said(*sounds)
    found = compare(got + rng.normal(0, 0.01, got.shape), wanted + rng.normal(0, 0.01, wanted.shape))
    assert (found.repeated >= LIMIT, found.skipped >= LIMIT) == (repeated, skipped)
    assert found.flawed == (repeated or skipped)


def test_a_pause_may_have_any_length() -> None:
    wanted = said(0, 1, 2)
    silence = np.zeros((3 * LIMIT, CEPSTRA))
    assert not compare(np.concatenate([wanted[:40], silence, wanted[40:]]), wanted).flawed


@pytest.mark.component
def test_a_word_left_out_doubled_or_missing_at_the_end_is_found() -> None:
    text, pair = "The hospital is surrounded by a beautiful park.", Pair()
    assert not pair.runs(text).flawed
    for kind, change in DAMAGE.items():
        assert pair.runs(text, " ".join(change(text.split(), 3))).flawed, kind
