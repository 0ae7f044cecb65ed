from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import WhisperFeatureExtractor
from transformers.audio_utils import spectrogram, window_function

from duologue.engine.models.minicpmo.hearing.mel import Spectrum, clip_frames
from tests.engine.models.minicpmo.hearing.small import units

EXTRACTOR = WhisperFeatureExtractor()


def golden(pcm: NDArray[np.int16], count: int) -> NDArray[np.float32]:
    """Frames of the ``count``-th unit, cut from those of the whole window: the released rule on Whisper's parts."""
    stream = np.concatenate([np.zeros(560), pcm[:16_000 * count] / 32768]).astype(np.float32)
    start = 0 if count < 30 else 160_000 * (count // 10 - 2)
    window = stream[start:480 + 16_000 * count]
    if len(window) < 80_000:
        log = spectrogram(window, window_function(400, "hann"), 400, 160, power=2.0, mel_filters=EXTRACTOR.mel_filters,
                          mel_floor=1e-10, log_mel="log10")
        whole = (np.asarray(log)[:, :-1].T + 4) / 4
    else:
        whole = EXTRACTOR(window, sampling_rate=16_000, padding=False)["input_features"][0].T
    first = 100 * (count - 1) - 2 - start // 160
    return np.asarray(whole[max(first, 0):first + 104], np.float32)


def streamed(pcm: NDArray[np.int16], count: int) -> NDArray[np.float32]:
    spectrum = Spectrum()
    for i in range(count):
        frames, spectrum = spectrum.after(pcm[16_000 * i:16_000 * (i + 1)])
    assert frames.shape == (104, 80)
    return frames[2:] if count == 1 else frames


@pytest.mark.parametrize("count", [1, 2, 4, 5, 6, 29, 30, 31, 39, 40, 61])
def test_a_units_frames_are_those_of_the_whole_window_at_that_moment(count: int) -> None:
    """The floor comes with 5 s, the window slides with 30 s, 40 s, ..."""
    pcm = np.concatenate(units(count, seed=count))
    np.testing.assert_allclose(streamed(pcm, count), golden(pcm, count), atol=1e-5)


@pytest.mark.parametrize(("count", "clicks"), [
    pytest.param(5, [-400], id="ahead of the unit's own frames"),
    pytest.param(5, [-150], id="in the last frame, which is half a mirror's"),
    pytest.param(30, [100 - 20 * 16_000 - 560], id="beside the mirror before a window that has slid"),
    pytest.param(30, [-20 * 16_000 - 660, 0], id="just before a window that has slid")])
def test_the_floor_is_set_by_the_loudest_frame_of_the_window(count: int, clicks: list[int]) -> None:
    pcm = np.zeros(16_000 * count, np.int16)
    for i, click in enumerate(clicks):
        pcm[len(pcm) + click - 4:len(pcm) + click] = 30_000 >> 3 * i
    np.testing.assert_allclose(streamed(pcm, count), golden(pcm, count), atol=1e-4)


@settings(max_examples=20)
@given(st.integers(5, 45), st.lists(st.tuples(st.integers(1, 45), st.integers(-1200, 500), st.integers(1, 30_000)),
                                    max_size=4))
def test_the_floor_is_the_released_one_wherever_clicks_are(count: int, clicks: list[tuple[int, int, int]]) -> None:
    pcm = np.zeros(16_000 * count, np.int16)
    for unit, offset, value in clicks:
        pcm[16_000 * unit + offset:][:20] = value
    np.testing.assert_allclose(streamed(pcm, count), golden(pcm, count), atol=1e-4)


def test_before_there_are_5_s_nothing_is_floored() -> None:
    pcm = np.concatenate([np.full(16_000, 20_000, np.int16), *[np.zeros(16_000, np.int16)] * 4])
    assert streamed(pcm, 4).min() == pytest.approx(-1.5)
    assert streamed(pcm, 5).min() > -1


def test_a_loud_moment_is_forgotten_when_it_leaves_the_window() -> None:
    loud, quiet = np.full(16_000, 30_000, np.int16), np.ones(16_000, np.int16)
    floors = [float(streamed(np.concatenate([loud, *[quiet] * 40]), count).min()) for count in (29, 30)]
    assert floors[0] > floors[1]


def test_a_spectrum_does_not_change_and_keeps_little() -> None:
    pcm = units(45)
    spectrum = Spectrum()
    for unit in pcm:
        one, later = spectrum.after(unit)
        other, _ = spectrum.after(unit)
        assert one.tobytes() == other.tobytes()
        spectrum = later
    assert len(spectrum._tail) == 1080
    assert len(spectrum._peaks) <= 29


@pytest.mark.parametrize("samples", [1, 159, 160, 161, 1300, 16_000, 40_080, 479_300, 479_999, 480_000])
def test_a_clips_frames_are_those_of_whisper_on_30_s(samples: int) -> None:
    pcm = np.concatenate(units(30, seed=samples))[:samples]
    whole = EXTRACTOR((pcm / 32768).astype(np.float32), sampling_rate=16_000, padding="max_length")["input_features"][0]
    np.testing.assert_allclose(clip_frames(pcm), whole.T[:-(-samples // 160)], atol=1e-5)
