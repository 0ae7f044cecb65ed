"""The pointer never repeats or leaves out what is said, whatever the network thinks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from duologue.engine.models.embedded.voice.pointer import END, MAX_ADVANCE, MAX_HELD, Pointer

LOGITS = arrays.arrays(np.float32, (400, END + 1), elements=st.floats(-10, 10, width=32))


@given(LOGITS, st.lists(st.integers(9, 60), min_size=1, max_size=12))
def test_a_word_is_said_forward_at_most_three_phones_a_frame_and_ends_in_time(
        logits: np.ndarray[tuple[int, int], np.dtype[np.float32]], phones: list[int]) -> None:
    symbols = [*phones, 4]
    pointer = Pointer(symbols, 61)
    places, frames = [0], 0
    for row in logits:
        if not pointer.move(row):
            break
        frames += 1
        places.append(pointer.place)
        position = pointer.position
        assert position.phone == symbols[pointer.place]
        assert position.following == [*symbols, 61][pointer.place + 1]
        assert position.held <= MAX_HELD
    else:
        raise AssertionError("the word did not end")
    steps = np.diff(places)
    assert frames >= 1
    assert steps.min() >= 0
    assert steps.max() <= MAX_ADVANCE
    assert places[-1] >= len(phones) - 1
    assert frames <= len(symbols) * (MAX_HELD + 1)


def test_a_word_in_which_the_network_would_stay_forever_is_said_phone_by_phone() -> None:
    pointer = Pointer([10, 11, 4], 12)
    stay = np.array([9, 0, 0, 0, -9], np.float32)
    held = []
    while pointer.move(stay):
        held.append((pointer.place, pointer.position.held))
    assert [place for place, _ in held] == [0] * MAX_HELD + [1] * (MAX_HELD + 1) + [2] * (MAX_HELD + 1)


def test_a_word_does_not_end_before_it_began_nor_before_its_last_phone() -> None:
    end = np.array([1, 0, 0, 0, 9], np.float32)
    pointer = Pointer([10, 4], 12)
    assert pointer.move(end)
    assert not pointer.move(end)
    longer = Pointer([10, 11, 12, 4], 12)
    assert all(longer.move(end) for _ in range(3))
    assert longer.place == 0
