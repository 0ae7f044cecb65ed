"""Frames to words: what is dropped, what is merged, and what the thinker is given of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.transcript import Transcript
from duologue.engine.models.embedded.sound import Sound, joined
from tests.engine.models.embedded.thinking.oracle import vocabulary

VOCABULARY = vocabulary()
PIECES = Pieces.of(VOCABULARY)
TABLE = np.random.default_rng(4).normal(0, 1, (len(PIECES.names), 6)).astype(np.float32)


def frame(**shares: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Probabilities by letter, ``a_`` for a piece that begins a word; the rest is blank."""
    found = np.zeros(len(PIECES), np.float32)
    for name, share in shares.items():
        found[1 + PIECES.names.index(name[0] if name.endswith("_") else f"##{name}")] = share
    found[0] = 1 - found.sum()
    return found


def read(*frames: np.ndarray[tuple[int], np.dtype[np.float32]]) -> Transcript:
    transcript = Transcript(PIECES, TABLE)
    transcript.read(frames)
    return transcript


BLANK = frame()
WORDS = st.text("abcdefghijklmnopqrstuvwxyz'", min_size=1, max_size=9)


def texts(transcript: Transcript) -> list[str]:
    return [word.word for word in transcript.words]


def test_blank_frames_are_dropped_and_pieces_joined_to_words() -> None:
    assert texts(read(BLANK, frame(a_=0.9), frame(b=0.8), BLANK, BLANK, frame(c_=0.9))) == ["ab", "c"]


def test_a_piece_that_goes_on_is_one_and_one_that_comes_again_is_two() -> None:
    assert texts(read(frame(a_=0.9), frame(a_=0.9), BLANK, frame(a_=0.9))) == ["a", "a"]


def test_a_frame_that_is_not_sure_which_piece_says_one_all_the_same() -> None:
    assert texts(read(frame(a_=0.3, b_=0.25))) == ["a"]
    assert texts(read(frame(a_=0.3, b_=0.15))) == []


def test_a_piece_that_goes_on_with_a_word_comes_right_behind_it_or_not_at_all() -> None:
    assert texts(read(frame(b=0.9), frame(c_=0.9), frame(b=0.9))) == ["cb"]
    assert texts(read(frame(c_=0.9), BLANK, frame(b=0.9), frame(a_=0.9))) == ["c", "a"]


def test_a_row_is_the_expectation_of_the_embedding_without_blank() -> None:
    word, = read(frame(a_=0.45, b_=0.15)).words
    a, b = (TABLE[PIECES.names.index(letter)] for letter in "ab")
    np.testing.assert_allclose(word.sound.rows, [0.75 * a + 0.25 * b], rtol=1e-5)


def test_a_word_has_a_row_for_each_piece() -> None:
    transcript = read(frame(a_=0.9), frame(a_=0.7), frame(b=1.0), frame(c=1.0))
    assert [word.sound.rows.shape for word in transcript.words] == [(3, 6)]


def test_words_are_where_they_were_said() -> None:
    frames = [BLANK] * 200
    frames[54], frames[79], frames[80] = frame(a_=0.9), frame(b_=0.9), frame(c_=0.9)
    one, two, three = read(*frames).words
    assert (one.start, one.end) == (144, 204)
    assert (two.start, two.end) == (244, 304)
    assert (three.start, three.end) == (304, 308)


def test_the_same_sounds_have_the_same_key() -> None:
    rows = np.ones((2, 3), np.float32)
    assert Sound.of(rows) == Sound.of(rows.copy())
    assert Sound.of(rows) != Sound.of(rows * 2)
    assert Sound.of(rows).piece.key == Sound.of(rows).key


def test_words_that_were_typed_have_no_sound_among_others_that_have() -> None:
    sound = Sound.of(np.ones((1, 3), np.float32))
    assert joined((2, ()), (1, (sound,))) == (None, None, sound)
    assert joined((2, ()), (1, ())) == ()


@given(WORDS)
def test_a_words_pieces_read_back_as_the_word(word: str) -> None:
    numbers = PIECES.classes(word)
    assert PIECES.text(numbers) == word
    assert [PIECES.begins(number) for number in numbers] == [True] + [False] * (len(numbers) - 1)
    assert tuple(PIECES.ids[number - 1] for number in numbers) == VOCABULARY.encode(word)


def test_a_thinker_with_other_words_is_refused() -> None:
    with pytest.raises(ConfigError, match="'zygote', which the thinker's vocabulary does not have"):
        Pieces(["a", "zygote"], VOCABULARY)
