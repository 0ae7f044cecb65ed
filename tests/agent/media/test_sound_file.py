"""Sound as files, read back by FFmpeg's own readers and by Python's."""

from __future__ import annotations

import io
import wave

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.agent.media.sound_file import FORMATS, SoundFile
from duologue.engine import Pcm


def tone(seconds: float, rate: int) -> Pcm:
    return (np.sin(np.arange(round(seconds * rate)) * 2 * np.pi * 440 / rate) * 8000).astype(np.int16)


def written(name: str, rate: int, pieces: list[Pcm]) -> bytes:
    file = SoundFile(FORMATS[name], rate)
    return b"".join([*(file.add(piece) for piece in pieces), file.finish()])


def read(name: str, data: bytes) -> tuple[NDArray[np.float64], int]:
    """Its samples between -1 and 1, and their rate."""
    container = av.open(io.BytesIO(data), "r", format="s16le" if name == "pcm" else None,
                        options={"sample_rate": "24000", "ch_layout": "mono"} if name == "pcm" else {})
    stream = container.streams.audio[0]
    resampler = av.AudioResampler(format="flt", layout="mono", rate=stream.rate)
    frames = [frame for packet in container.decode(stream) for frame in resampler.resample(packet)]
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(float), stream.rate


@pytest.mark.parametrize("rate", [8_000, 12_000, 16_000, 24_000, 48_000])
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_in_pieces_is_the_sound_when_it_is_read(name: str, rate: int) -> None:
    sound = tone(1.2, rate)
    samples, at = read(name, written(name, rate, list(np.split(sound, [7, rate // 3, rate // 3 + 640]))))
    # Coders that work in frames of up to 1152 samples fill the first and the last.
    assert -50 <= len(samples) - 1.2 * at <= 3 * 1152
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    assert np.fft.rfftfreq(len(samples), 1 / at)[spectrum.argmax()] == pytest.approx(440, abs=2)
    assert np.sqrt(np.mean(samples[at // 4:at] ** 2)) == pytest.approx(8000 / 32768 / np.sqrt(2), rel=0.1)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 3000), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_a_file_without_loss_holds_the_very_samples(lengths: list[int], seed: int) -> None:
    drawn = np.random.default_rng(seed)
    pieces = [drawn.integers(-32768, 32768, length).astype(np.int16) for length in lengths]
    with wave.open(io.BytesIO(written("wav", 16_000, pieces))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 1, 2)
        data = file.readframes(sum(lengths))
    assert np.array_equal(np.frombuffer(data, np.int16), np.concatenate(pieces))


@pytest.mark.parametrize("name", FORMATS)
def test_bytes_come_while_the_sound_is_made(name: str) -> None:
    file = SoundFile(FORMATS[name], 16_000)
    assert sum(len(file.add(tone(0.1, 16_000))) for _ in range(4)) > 0
