from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

from duologue.engine.models.duplex.ear import HOP, WINDOW, Ear, Hearing, log_mel

HIDDEN = 12


def noise(samples: int, seed: int = 0) -> NDArray[np.int16]:
    return (np.random.default_rng(seed).normal(0, 3000, samples)).astype(np.int16)


@pytest.fixture(scope="module")
def ear() -> Ear:
    made = np.random.default_rng(1)
    return Ear(made.normal(size=(HIDDEN, 80)).astype(np.float32), made.normal(size=HIDDEN).astype(np.float32), 100)


def test_the_spectrum_is_that_of_whisper_but_for_what_takes_the_whole_recording() -> None:
    samples = (noise(8000) / 32768).astype(np.float32)
    filters = mel_filter_bank(201, 80, 0.0, 8000.0, 16_000, norm="slaney", mel_scale="slaney")
    golden = spectrogram(samples, window_function(WINDOW, "hann"), WINDOW, HOP, power=2.0, center=False,
                         mel_filters=filters, mel_floor=1e-10, log_mel="log10")
    np.testing.assert_allclose(log_mel(samples), (np.asarray(golden).T + 4) / 4, atol=2e-5)


def test_a_row_is_the_mean_of_its_windows_through_one_layer(ear: Ear) -> None:
    pcm = noise(3200)
    rows = Hearing(ear).hear(pcm).rows
    samples = np.concatenate([np.zeros(WINDOW - HOP), pcm / 32768]).astype(np.float32)
    mean = log_mel(samples).reshape(2, 10, 80).mean(axis=1)
    np.testing.assert_allclose(rows, mean @ ear._weight + ear._bias, rtol=1e-5, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 6000), max_size=6))
def test_rows_are_the_same_to_the_bit_however_the_stream_was_cut(cuts: list[int]) -> None:
    made = np.random.default_rng(2)
    ear = Ear(made.normal(size=(HIDDEN, 80)).astype(np.float32), np.zeros(HIDDEN, np.float32), 100)
    pcm = noise(6000)
    whole = Hearing(ear).hear(pcm)
    hearing = Hearing(ear)
    pieces = [hearing.hear(pcm[a:b]).rows for a, b in pairwise([0, *sorted(cuts), 6000])]
    assert whole.rows.shape == (3, HIDDEN)
    assert np.concatenate(pieces).tobytes() == whole.rows.tobytes()


def test_a_row_hears_nothing_that_comes_after_it(ear: Ear) -> None:
    one, other = noise(3200, 1), noise(3200, 1)
    other[1600:] = 0
    first, second = Hearing(ear).hear(one).rows, Hearing(ear).hear(other).rows
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() != second[1].tobytes()


def test_equal_audio_has_equal_keys(ear: Ear) -> None:
    keys = [Hearing(ear).hear(noise(1600, seed)).key for seed in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2]


def test_silence_is_finite_and_a_row_is_whole_windows(ear: Ear) -> None:
    assert np.isfinite(Hearing(ear).hear(np.zeros(16_000, np.int16)).rows).all()
    with pytest.raises(ValueError, match="whole windows"):
        Ear(np.zeros((HIDDEN, 80), np.float32), np.zeros(HIDDEN, np.float32), 25)
