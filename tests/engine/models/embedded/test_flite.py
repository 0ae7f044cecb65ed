"""libflite's front end and acoustic model through ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.flite import FliteError, FliteVoice, Token, rms_voice
from duologue.engine.models.embedded.voice_format import SAMPLE_RATE, VECTOR_SAMPLES, VECTOR_WIDTH
from tests.engine.models.embedded.flite_alone import flite_alone


def tokens(text: str) -> list[Token]:
    return [Token(word.rstrip(".,"), word[len(word.rstrip(".,")):]) for word in text.split()]


@pytest.mark.component
def test_words_are_where_flite_itself_says_them(tmp_path: Path) -> None:
    text = "The old king had three daughters, and each of them wanted a horse."
    reference = flite_alone(text, tmp_path)
    speech = rms_voice().speak(tokens(text))
    seconds = [(r[0] * VECTOR_SAMPLES / SAMPLE_RATE, r[1] * VECTOR_SAMPLES / SAMPLE_RATE)
               for r in speech.tokens if r]
    assert [start for start, _ in seconds] == pytest.approx(reference.starts, abs=0.0051)
    assert [end for _, end in seconds] == pytest.approx(reference.ends, abs=0.0051)
    # flite's first vector makes no samples.
    assert (len(speech.vectors) - 1) * VECTOR_SAMPLES == len(reference.pcm)


def test_a_token_that_becomes_several_words_is_one_range() -> None:
    one, number, last = rms_voice().speak([Token("say"), Token("1234567"), Token("now", ".")]).tokens
    assert one is not None
    assert number is not None
    assert last is not None
    assert one[1] == number[0]
    assert number[1] == last[0]
    assert number[1] - number[0] > 5 * (one[1] - one[0])


def test_vectors_have_a_pitch_a_spectrum_and_strengths() -> None:
    speech = rms_voice().speak(tokens("Hello there."))
    (first, end), = [r for r in speech.tokens[:1] if r]
    assert speech.vectors.shape[1] == VECTOR_WIDTH
    assert speech.vectors.dtype == np.float32
    assert np.isfinite(speech.vectors).all()
    assert (speech.vectors[:first - 1, 0] == 0).all()
    pitch = speech.vectors[first:end, 0]
    assert ((pitch > 60) & (pitch < 200)).all()


def test_a_higher_rate_makes_speech_shorter() -> None:
    lengths = [len(rms_voice().speak(tokens("a rather long sentence about nothing"), rate).vectors)
               for rate in (0.8, 1.0, 1.25)]
    assert lengths[0] == pytest.approx(lengths[1] * 1.25, rel=0.05)
    assert lengths[2] == pytest.approx(lengths[1] * 0.8, rel=0.05)


def test_a_phrase_does_not_depend_on_what_was_said_before_it() -> None:
    first = rms_voice().speak(tokens("five o'clock")).vectors
    rms_voice().speak(tokens("something else"), 0.5)
    assert np.array_equal(rms_voice().speak(tokens("five o'clock")).vectors, first)


def test_what_cannot_be_said_is_an_error() -> None:
    with pytest.raises(FliteError):
        rms_voice().speak([Token("'")])
    with pytest.raises(FliteError):
        rms_voice().speak([])


def test_a_missing_library_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, mode: int) -> ctypes.CDLL:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(ConfigError, match="libflite1"):
        FliteVoice()
