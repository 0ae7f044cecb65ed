from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.numbers import (
    LARGEST,
    NUMBER_WORDS,
    read_number,
    read_whole,
    say_number,
    say_whole,
    spelled_out,
)


@given(st.integers(1 - LARGEST, LARGEST - 1))
def test_a_whole_number_is_read_as_it_was_said(value: int) -> None:
    assert read_whole(say_whole(value).split()) == value


@given(st.integers(-10**8, 10**8), st.sampled_from((1, 2, 4, 5, 10, 20, 25, 50, 100)))
def test_a_number_with_two_decimals_is_read_as_it_was_said(over: int, under: int) -> None:
    value = Fraction(over, under)
    assert read_number(say_number(value).split()) == value


@given(st.fractions(-10**6, 10**6))
def test_a_rounded_number_says_so_and_is_near(value: Fraction) -> None:
    said = say_number(value)
    if said == "almost zero":
        assert abs(value) < Fraction(1, 200)
        return
    exact = (value * 100).denominator == 1
    assert said.startswith("about ") != exact
    read = read_number(said.removeprefix("about ").split())
    assert read is not None
    assert abs(read - value) <= Fraction(1, 200)


@given(st.integers(0, 9_999))
def test_the_grammar_knows_every_number_up_to_9999(value: int) -> None:
    assert grammar().covers("number", say_whole(value).split())


@given(st.lists(st.sampled_from(sorted(NUMBER_WORDS | {"and", "a"})), max_size=6))
def test_any_row_of_number_words_is_one_number_or_none(words: list[str]) -> None:
    number = read_number(words)
    assert number is None or abs(number) < LARGEST * 1000


@pytest.mark.parametrize(("words", "value"), [
    ("a hundred and five", 105), ("two thousand twelve", 2012), ("a thousand and one", 1001),
    ("ninety nine thousand nine hundred and ninety nine", 99_999), ("twenty five", 25), ("25", 25),
    ("minus seven", -7), ("negative seven", -7),
])
def test_numbers_are_read(words: str, value: int) -> None:
    assert read_whole(words.split()) == value


@pytest.mark.parametrize("words", [
    "", "twenty twenty", "five twenty", "hundred", "and five", "five and", "twenty and five", "a", "thirteen two",
    "one thousand two thousand", "two point", "point five", "minus", "zero five", "twenty ten",
])
def test_what_is_no_number_is_read_as_none(words: str) -> None:
    assert read_number(words.split()) is None


@pytest.mark.parametrize(("value", "said"), [
    (0, "zero"), (15, "fifteen"), (42, "forty two"), (105, "one hundred and five"), (-3, "minus three"),
    (1001, "one thousand and one"), (1234, "one thousand two hundred and thirty four"),
    (2_000_000, "two million"), (10**12, "1000000000000"),
])
def test_whole_numbers_are_said(value: int, said: str) -> None:
    assert say_whole(value) == said


@pytest.mark.parametrize(("value", "said"), [
    (Fraction(5, 2), "two point five"), (Fraction(-1, 4), "minus zero point two five"),
    (Fraction(2, 3), "about zero point six seven"), (Fraction(299999, 100000), "about three"),
    (Fraction(1, 1000), "almost zero"),
])
def test_fractions_are_said(value: Fraction, said: str) -> None:
    assert say_number(value) == said


@pytest.mark.parametrize(("token", "said"), [
    ("25", "twenty five"), ("2.5", "two point five"), ("-4", "minus four"), ("apple", "apple"), ("1-2", "1-2"),
])
def test_typed_digits_become_words(token: str, said: str) -> None:
    assert spelled_out(token) == said
