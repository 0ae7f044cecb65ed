"""Audio as bytes, both ways."""

from __future__ import annotations

import base64
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.realtime.formats import AudioFormat, Coding
from duologue.agent.transports.websocket.coding import AudioReader, AudioWriter, BadAudioError
from duologue.engine import INPUT_RATE

FORMATS = [AudioFormat("audio/pcm", 24_000), AudioFormat("audio/pcm", 16_000), AudioFormat("audio/pcm", 48_000),
           AudioFormat("audio/pcm", 8000), AudioFormat("audio/pcmu", 8000), AudioFormat("audio/pcma", 8000)]


def tone(rate: int, seconds: float = 1.0) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return (8000 * np.sin(2 * np.pi * 440 * np.arange(round(rate * seconds)) / rate)).astype(np.int16)


def share_at_440(sound: np.ndarray[tuple[int], np.dtype[np.int16]], rate: int) -> float:
    """Of the sound's energy, how much lies within 5 Hz of the tone."""
    power = np.abs(np.fft.rfft(sound.astype(np.float64) * np.hanning(sound.size))) ** 2
    at = np.fft.rfftfreq(sound.size, 1 / rate)
    return float(power[np.abs(at - 440) <= 5].sum() / power.sum())


@pytest.mark.parametrize("wire", FORMATS, ids=lambda wire: f"{wire.coding}@{wire.rate}")
def test_a_tone_is_the_same_tone_after_writing_and_reading(wire: AudioFormat) -> None:
    text = AudioWriter(24_000, wire).write(tone(24_000))
    heard = AudioReader(wire).read(text)
    assert heard.size == INPUT_RATE
    assert share_at_440(heard[1600:-1600], INPUT_RATE) > 0.99
    assert 0.9 < np.abs(heard[1600:-1600]).max() / 8000 < 1.1


@pytest.mark.parametrize("coding", ["audio/pcm", "audio/pcmu"])
@given(st.lists(st.integers(0, 4000), max_size=12))
def test_what_is_heard_does_not_depend_on_how_it_was_cut(coding: Coding, cuts: list[int]) -> None:
    wire = AudioFormat(coding, 24_000 if coding == "audio/pcm" else 8000)
    width = 2 if coding == "audio/pcm" else 1
    data = base64.b64decode(AudioWriter(16_000, wire).write(tone(16_000, 0.3)))
    whole, pieces = AudioReader(wire), AudioReader(wire)
    places = sorted({min(cut * width, len(data)) for cut in cuts} | {0, len(data)})
    parts = [pieces.read(base64.b64encode(data[start:end]).decode()) for start, end in itertools.pairwise(places)]
    expected = whole.read(base64.b64encode(data).decode())
    together = np.concatenate(parts)
    assert together.size == expected.size
    if coding == "audio/pcm":
        assert np.array_equal(together, expected)


@pytest.mark.parametrize("text", ["?", "AAA", "AAAA\n", "ä", base64.b64encode(b"abc").decode()])
def test_what_is_no_audio_is_refused_and_the_stream_goes_on(text: str) -> None:
    reader = AudioReader(AudioFormat())
    with pytest.raises(BadAudioError):
        reader.read(text)
    assert reader.read(base64.b64encode(bytes(480)).decode()).size == 160


def test_nothing_is_nothing() -> None:
    for wire in FORMATS:
        assert AudioReader(wire).read("").size == 0
