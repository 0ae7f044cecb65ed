"""What is computed is what was trained, however the samples come."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.hearing import features
from duologue.engine.models.embedded.hearing.encoder import STEP, Stream
from duologue.engine.models.embedded.hearing.features import FRAME, OVERLAP
from tests.engine.models.embedded.hearing.drawn import CLASSES, encoder, network

SOUND = np.random.default_rng(2).normal(0, 2000, 90 * FRAME).astype(np.int16)


def heard(cuts: list[int]) -> list[bytes]:
    stream = Stream(encoder())
    edges = [0, *sorted(cuts), len(SOUND)]
    return [frame.tobytes() for start, end in pairwise(edges) for frame in stream.push(SOUND[start:end])]


WHOLE = heard([])


def test_every_frame_of_a_whole_step_is_heard() -> None:
    assert len(WHOLE) == 90 // STEP * STEP


@settings(max_examples=25)
@given(st.lists(st.integers(0, len(SOUND)), max_size=40))
def test_what_is_heard_does_not_depend_on_how_the_samples_come(cuts: list[int]) -> None:
    assert heard(cuts) == WHOLE


def test_the_arithmetic_is_that_of_the_trained_network() -> None:
    whole = np.concatenate([np.zeros(OVERLAP, np.float32), features.scaled(SOUND)])
    frames = features.frames(whole, features.filters())
    with torch.inference_mode():
        wanted = network()(torch.from_numpy(frames)[None])[0][0].softmax(-1).numpy()
    got = np.array([np.frombuffer(frame, np.float32) for frame in WHOLE])
    assert got.shape == (90, CLASSES)
    assert np.ptp(wanted) > 0.3, "the weights tell nothing"
    np.testing.assert_allclose(got, wanted, atol=2e-4)


def test_what_comes_later_changes_nothing() -> None:
    stream = Stream(encoder())
    other = [frame.tobytes() for frame in stream.push(np.concatenate([SOUND[:40 * FRAME], SOUND[:50 * FRAME]]))]
    assert other[:40] == WHOLE[:40]
    assert other[40:] != WHOLE[40:]
