"""Tokens as they are read aloud."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.voice import spoken

READINGS = {
    "42": "forty two", "1,000": "one thousand",
    "12345678": "twelve million three hundred and forty five thousand six hundred and seventy eight",
    "007": "zero zero seven", "3.14": "three point one four", "-5": "minus five", "1984": "nineteen eighty four",
    "1905": "nineteen oh five", "1900": "nineteen hundred", "2005": "two thousand and five",
    "2026": "twenty twenty six", "1990s": "nineteen nineties", "3rd": "third", "21st": "twenty first",
    "100th": "one hundredth", "12th": "twelfth", "20th": "twentieth", "10:30": "ten thirty", "7:05": "seven oh five",
    "12:00": "twelve oclock", "10am": "ten A M", "10:15pm": "ten fifteen P M",
    "5/6/2026": "may sixth twenty twenty six", "1/2": "one half", "3/4": "three quarters", "2/3": "two thirds",
    "3/3": "three slash three", "1/0": "one slash zero",
    "99/99/2020": "ninety nine slash ninety nine slash two thousand and twenty", "$5": "five dollars",
    "$1": "one dollar", "$5.20": "five dollars twenty cents", "$0.99": "ninety nine cents",
    "$5.5": "five dollars fifty cents", "50%": "fifty percent", "5km": "five kilometers", "20s": "twenties",
    "3.5m": "three point five meters", "twenty-five": "twenty five", "USB": "U S B", "NASA": "nasa", "B2B": "B two B",
    "TV": "T V", "OK": "ok", "GO": "go", "p.m.": "P M", "e.g": "E G", "Mr": "mister", "Dr": "doctor",
    "etc": "et cetera", "I": "i", "x": "X", "hmm": "hmm", "isn't": "isnt", "it's": "it 's", "we'll": "we 'll",
    "boys'": "boys", "O'Brien": "obrien", "www.example.com": "W W W dot example dot com", "and/or": "and slash or",
    "": "", "'": "", "%": "percent",
}


@pytest.mark.parametrize(("token", "words"), READINGS.items())
def test_a_token_is_read_as_people_read_it(token: str, words: str) -> None:
    assert spoken.words(token) == words.split()


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=32))
def test_any_token_becomes_words_of_letters_alone(token: str) -> None:
    for word in spoken.words(token):
        assert re.fullmatch(r"[a-z]+|[A-Z]|'(s|ll|ve|d)", word)


@given(st.text("0123456789,.:/$%", max_size=32))
def test_no_digit_of_a_figure_is_lost_in_silence(token: str) -> None:
    assert bool(spoken.words(token)) >= any(char.isdigit() for char in token)
