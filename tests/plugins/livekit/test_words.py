"""A reply's text in step with its sound."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from duologue.plugins.livekit.words import Words

TEXT = "One, two, three."
PLACES = [{"start": word.start(), "end": word.end(), "start_ms": 1000 * at, "end_ms": 1000 * at + 800}
          for at, word in enumerate(re.finditer(r"\w+", TEXT))]


def text_of(words: Words) -> str:
    return "".join(piece.text for piece in words.due())


def spoken(*, begun: bool = True, placed: bool = True) -> Words:
    words = Words()
    words.write(TEXT)
    if placed:
        words.place(PLACES)
    if begun:
        words.begin()
    return words


def test_a_word_is_given_when_three_quarters_of_it_were_played() -> None:
    words = spoken()
    words.play(0.59, 0.59)
    assert text_of(words) == ""
    words.play(0.6, 0.6)
    assert text_of(words) == "One, "
    words.play(1.7, 1.7)
    assert text_of(words) == "two, "
    words.play(2.8, 2.8)
    assert text_of(words) == "three"
    words.end()
    assert text_of(words) == "."


def test_text_that_is_written_after_its_sound_is_given_when_it_comes() -> None:
    words = Words()
    words.place(PLACES)
    words.begin()
    words.play(1.7, 1.7)
    assert text_of(words) == ""
    words.write("One, tw")
    assert text_of(words) == "One, "
    words.write("o,")
    assert text_of(words) == "two,"


def test_pauses_move_the_time_of_what_comes_after_them() -> None:
    words = spoken()
    words.play(0.6, 0.6)
    assert words.due() == [("One, ", 0.0, 0.8)]
    words.play(1.7, 4.7)
    assert words.due() == [("two, ", 4.0, 4.8)]


def test_words_may_be_placed_after_their_sound_has_begun() -> None:
    words = spoken(placed=False)
    words.play(0.5, 0.5)
    assert text_of(words) == ""
    words.place(PLACES[:1])
    words.play(0.7, 0.7)
    assert text_of(words) == "One"


def test_of_a_voice_whose_words_are_never_placed_the_text_is_given_after_a_while() -> None:
    words = spoken(placed=False)
    words.play(2.9, 2.9)
    assert text_of(words) == ""
    words.play(3.0, 3.0)
    assert text_of(words) == TEXT
    words.write(" Four.")
    assert text_of(words) == " Four."


def test_where_nobody_listens_it_is_given_at_the_end() -> None:
    words = spoken(begun=False)
    assert text_of(words) == ""
    words.end()
    assert text_of(words) == TEXT


@given(st.lists(st.floats(0, 4)), st.lists(st.integers(1, 5)))
def test_all_of_it_is_given_once_and_in_order_however_it_comes(played: list[float], cuts: list[int]) -> None:
    words, told, at = Words(), "", 0
    words.begin()
    words.place(PLACES)
    for seconds, letters in zip(sorted(played), cuts, strict=False):
        words.write(TEXT[at:at + letters])
        at += letters
        words.play(seconds, seconds)
        told += text_of(words)
        assert TEXT.startswith(told)
    words.write(TEXT[at:])
    words.end()
    assert told + text_of(words) == TEXT
