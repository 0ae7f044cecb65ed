"""The vocoder on vectors whose sound is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.engine.models.embedded.flite import Token, rms_voice
from duologue.engine.models.embedded.vocoder import Vocoder
from duologue.engine.models.embedded.voice_format import (
    CEPSTRA,
    FRAME_SAMPLES,
    FRAME_VECTORS,
    SAMPLE_RATE,
    VECTOR_WIDTH,
)

VOCODER = Vocoder()


def flat(frames: int, f0: float, strength: float) -> NDArray[np.float32]:
    """Frames of a flat spectrum with amplitude 1 in the int16 range."""
    vectors = np.zeros((frames, FRAME_VECTORS, VECTOR_WIDTH), np.float32)
    vectors[..., 0] = f0
    vectors[..., 1 + CEPSTRA:] = strength
    return vectors


def voiced(frames: NDArray[np.float32], seed: int = 0) -> NDArray[np.float32]:
    stream = VOCODER.open(seed)
    return np.concatenate([VOCODER.step([stream], frame[None])[0] for frame in frames])


def speech() -> NDArray[np.float32]:
    vectors = rms_voice().speak([Token("good"), Token("morning", ",")]).vectors
    return vectors[:len(vectors) // FRAME_VECTORS * FRAME_VECTORS].reshape(-1, FRAME_VECTORS, VECTOR_WIDTH)


SPEECH = speech()


@pytest.mark.parametrize("f0", [70.0, 100.0, 133.7, 220.0])
def test_pulses_come_at_the_pitch(f0: float) -> None:
    sound = voiced(flat(50, f0, 1.0))[SAMPLE_RATE // 2:]
    power = np.abs(np.fft.rfft(sound * np.hanning(len(sound)))) ** 2
    hz = np.fft.rfftfreq(len(sound), 1 / SAMPLE_RATE)
    for harmonic in (1, 2, 7):
        near = np.abs(hz - harmonic * f0) < f0 / 2
        assert hz[near][np.argmax(power[near])] == pytest.approx(harmonic * f0, abs=1.0)


def test_pulses_and_noise_have_the_same_power_whatever_the_mix() -> None:
    power = [np.mean(voiced(flat(100, 100.0, strength))[FRAME_SAMPLES:].astype(float) ** 2) * 32768 ** 2
             for strength in (0.0, 1.0)]
    assert power[0] == pytest.approx(1.0, rel=0.05)
    assert power[1] == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(("band", "low", "high"), [(0, 0, 1000), (1, 1000, 2000), (2, 2000, 4000),
                                                   (3, 4000, 6000), (4, 6000, 8000)])
def test_each_strength_voices_its_own_band(band: int, low: int, high: int) -> None:
    frames = flat(50, 100.0, 1.0)
    frames[..., 1 + CEPSTRA:] = 0
    frames[..., 1 + CEPSTRA + band] = 1
    other = frames.copy()
    other[..., 0] = 0  # the same noise without the pulses
    pulses = (voiced(frames).astype(float) - voiced(other))[FRAME_SAMPLES:]
    power = np.abs(np.fft.rfft(pulses * np.hanning(len(pulses)))) ** 2
    hz = np.fft.rfftfreq(len(pulses), 1 / SAMPLE_RATE)
    inside = (hz >= low - 250) & (hz <= high + 250)
    assert power[inside].sum() > 0.999 * power.sum()


def test_the_first_cepstrum_is_the_level() -> None:
    frames = flat(20, 0.0, 0.0)
    louder = frames.copy()
    louder[..., 1] = np.log(10)
    assert voiced(louder) == pytest.approx(10 * voiced(frames), rel=1e-3, abs=1e-7)


def test_filters_follow_the_warped_cepstrum() -> None:
    # c1 > 0 tilts the spectrum down; at frequency 0 the log amplitude is c0 + c1, at 8 kHz c0 - c1.
    frames = flat(200, 0.0, 0.0)
    frames[..., 2] = 1.0
    sound = voiced(frames).astype(float)
    power = np.abs(np.fft.rfft(sound[:len(sound) // 1024 * 1024].reshape(-1, 1024) * np.hanning(1024))) ** 2
    log = 0.5 * np.log(power.mean(0))
    assert log[2:8].mean() - log[-8:-2].mean() == pytest.approx(2.0, abs=0.15)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 5), start=st.integers(0, len(SPEECH) - 4))
def test_streams_side_by_side_sound_as_they_do_alone(seed: int, start: int) -> None:
    parts = [SPEECH[start:start + 4], SPEECH[:4], SPEECH[-4:]]
    streams = [VOCODER.open(seed + i) for i in range(3)]
    together = [VOCODER.step(streams, np.stack([part[k] for part in parts])) for k in range(4)]
    for i, part in enumerate(parts):
        assert np.array_equal(np.concatenate([sound[i] for sound in together]), voiced(part, seed + i))


def test_silence_between_voiced_frames_stops_the_pulses() -> None:
    frames = np.concatenate([flat(5, 100.0, 1.0), flat(5, 0.0, 1.0), flat(5, 100.0, 1.0)])
    sound = voiced(frames)
    quiet = sound[7 * FRAME_SAMPLES:9 * FRAME_SAMPLES]
    assert np.abs(quiet).max() < 0.01 * np.abs(sound).max()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 700, width=32), min_size=8, max_size=8), st.integers(0, 3))
def test_any_pitch_gives_finite_samples(f0: list[float], seed: int) -> None:
    frames = flat(3, 100.0, 0.5)
    frames[1, :, 0] = f0
    assert np.isfinite(voiced(frames, seed)).all()
