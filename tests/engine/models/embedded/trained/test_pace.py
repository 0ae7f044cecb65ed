"""Faster and slower: how many frames, and which."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.voice.pace import Pace, between

_FRAMES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(_FRAMES)
def test_the_voices_own_pace_says_every_frame_once(frames: list[tuple[bool, bool]]) -> None:
    lasting, kept = zip(*frames, strict=True)
    assert Pace().places(lasting, kept, 1.0) == list(range(len(frames)))


@given(_FRAMES, st.floats(0.5, 2.0))
def test_what_must_be_said_is_said_in_order_and_a_burst_once(frames: list[tuple[bool, bool]], rate: float) -> None:
    lasting, kept = zip(*frames, strict=True)
    places = Pace().places(lasting, kept, rate)
    assert places == sorted(set(places))
    counts = [sum(int(place) == i for place in places) for i in range(len(frames))]
    for count, long, must in zip(counts, lasting, kept, strict=True):
        assert (1 if must else 0) <= count <= (3 if long else 1)
    assert all(place in places for place in range(len(frames)) if counts[place])


@pytest.mark.parametrize("rate", [0.5, 0.75, 0.9, 1.1, 1.5, 2.0])
def test_lasting_sounds_take_as_long_as_the_rate_says_word_after_word(rate: float) -> None:
    pace = Pace()
    said = sum(len(pace.places([True] * 4, [False] * 4, rate)) for _ in range(100))
    assert said == pytest.approx(400 / rate, abs=2)


def test_between_two_frames_is_between_their_levels() -> None:
    digits = np.array([[0, 7], [4, 3], [4, 0]], np.int32)
    assert between(digits, [0, 0.5, 1, 1.25, 2, 2.5]).tolist() == [[0, 7], [2, 5], [4, 3], [4, 2], [4, 0], [4, 0]]
