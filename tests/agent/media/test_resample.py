"""Samples come out when they are due, exactly as many as the rates say, and only what both rates can carry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.media.resample import Resampler
from duologue.engine import Pcm
from tests.agent.media import steady

RATES = [8000, 16_000, 22_050, 24_000, 48_000]


def tone(frequency: float, rate: int) -> Pcm:
    pcm: Pcm = (10_000 * np.sin(2 * np.pi * frequency * np.arange(rate) / rate)).astype(np.int16)
    return pcm


def resampled(pcm: Pcm, rate: int, to: int) -> Pcm:
    resampler = Resampler(rate, to)
    return np.concatenate([resampler.process(pcm[at:at + rate // 50]) for at in range(0, pcm.size, rate // 50)])


def level_db(pcm: Pcm) -> float:
    """Of the middle, below a full tone of :func:`tone`."""
    middle = pcm[pcm.size // 10: -pcm.size // 10].astype(np.float64)
    return float(20 * np.log10(np.sqrt(np.mean(middle ** 2)) / (10_000 / np.sqrt(2)) + 1e-9))


@steady
@given(st.sampled_from(RATES), st.sampled_from(RATES), st.lists(st.integers(0, 700), max_size=12), st.integers(0, 99))
def test_after_any_pieces_the_count_is_exact_and_the_pieces_do_not_matter(
        rate: int, to: int, sizes: list[int], seed: int) -> None:
    pcm = np.random.default_rng(seed).integers(-9000, 9000, sum(sizes)).astype(np.int16)
    resampler, out, taken = Resampler(rate, to), [np.zeros(0, np.int16)], 0
    for size in sizes:
        out.append(resampler.process(pcm[taken:taken + size]))
        taken += size
        assert sum(piece.size for piece in out) == -(-taken * to // rate)
    assert np.array_equal(np.concatenate(out), Resampler(rate, to).process(pcm))


@pytest.mark.parametrize(("rate", "to"), [
    (8000, 16_000), (16_000, 8000), (24_000, 8000), (48_000, 8000), (22_050, 8000)])
def test_every_20_ms_in_are_20_ms_out(rate: int, to: int) -> None:
    resampler = Resampler(rate, to)
    assert {resampler.process(tone(500, rate)[: rate // 50]).size for _ in range(50)} == {to // 50}


@pytest.mark.parametrize(("rate", "to"), [(8000, 16_000), (16_000, 8000), (24_000, 8000), (22_050, 8000)])
@pytest.mark.parametrize("frequency", [200, 1000, 3000, 3400])
def test_a_telephones_band_passes(rate: int, to: int, frequency: int) -> None:
    assert abs(level_db(resampled(tone(frequency, rate), rate, to))) < 0.6


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000])
@pytest.mark.parametrize("frequency", [4400, 5000, 7000])
def test_what_would_fold_back_is_stopped(rate: int, frequency: int) -> None:
    assert level_db(resampled(tone(frequency, rate), rate, 8000)) < -60


def test_a_sound_is_late_by_two_milliseconds() -> None:
    click = np.zeros(1600, np.int16)
    click[800] = 20_000
    assert abs(int(np.argmax(resampled(click, 16_000, 8000))) - 400 - 16) <= 1
