"""Skills called with words as callers say them, which the dialogue's own templates do not have."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from random import Random

import pytest

from duologue.engine.models.embedded.dialogue.memory import Context, Memory
from duologue.engine.models.embedded.dialogue.numbers import read_amount
from duologue.engine.models.embedded.dialogue.policy import HANDLERS

NOW = datetime(2026, 3, 21, 14, 30)


def call(name: str, memory: Memory | None = None, /, **slots: str) -> tuple[str, Memory]:
    return HANDLERS[name](slots, memory or Memory(), Context("", NOW, 0.0, Random(0)))


@pytest.mark.parametrize(("words", "value"), [
    ("half a", Fraction(1, 2)), ("half an", Fraction(1, 2)), ("a", Fraction(1)), ("a quarter of an", Fraction(1, 4)),
    ("three quarters of a", Fraction(3, 4)), ("two and a half", Fraction(5, 2)),
    ("one and three quarters", Fraction(7, 4)),
    ("a dozen", Fraction(12)), ("two dozen", Fraction(24)), ("half a dozen", Fraction(6)), ("a couple of", Fraction(2)),
    ("a pair of", Fraction(2)), ("one hundred and two and a half", Fraction(205, 2)), ("twenty five", Fraction(25)),
    ("two point five", Fraction(5, 2)), ("a third of a", Fraction(1, 3)),
    ("", None), ("of", None), ("and", None), ("apple", None), ("half apple", None),
    ("two and", None), ("and a half", None),
])
def test_an_amount_is_read(words: str, value: Fraction | None) -> None:
    assert read_amount(words.split()) == value


@pytest.mark.parametrize(("operator", "left", "right", "said"), [
    ("add", "three", "four", "Three plus four is seven."), ("and", "three", "four", "Three plus four is seven."),
    ("sum", "three", "four", "Three plus four is seven."), ("take", "nine", "five", "Nine minus five is four."),
    ("subtract", "nine", "five", "Nine minus five is four."), ("less", "nine", "five", "Nine minus five is four."),
    ("multiply", "six", "seven", "Six times seven is forty two."),
    ("over", "nine", "three", "Nine divided by three is three."),
    ("into", "nine", "three", "Nine divided by three is three."),
    ("divide", "nine", "zero", "Nothing can be divided by zero."),
    ("bake", "nine", "three", "I did not get what to do with the numbers."),
])
def test_a_sum_is_done_as_it_is_worded(operator: str, left: str, right: str, said: str) -> None:
    assert call("arithmetic", operator=operator, left=left, right=right)[0] == said


@pytest.mark.parametrize(("operator", "said"), [
    ("double", "Twice ten is twenty."), ("half of", "Half of ten is five."), ("triple", "Three times ten is thirty.")])
def test_a_share_needs_one_number(operator: str, said: str) -> None:
    assert call("arithmetic", operator=operator, right="ten")[0] == said
    assert call("further", Memory(result=Fraction(10)), operator=operator)[0] == said


def test_a_sum_without_one_of_its_numbers_asks_for_them() -> None:
    assert call("arithmetic", operator="plus", right="ten")[0] == "I did not get the numbers."
    assert call("further", Memory(result=Fraction(10)), operator="plus")[0] == "I did not get the numbers."


@pytest.mark.parametrize(("number", "source", "target", "said"), [
    ("half a", "mile", "feet", "Zero point five miles are two thousand six hundred and forty feet."),
    ("a dozen", "inches", "feet", "Twelve inches are one foot."),
    ("four", "quarts", "gallons", "Four quarts are one gallon."),
    ("sixteen", "tablespoons", "cups", "Sixteen tablespoons are one cup."),
    ("three", "teaspoons", "tablespoons", "Three teaspoons are one tablespoon."),
    ("two", "cubits", "feet", "I do not know the unit cubits."),
])
def test_a_conversion_takes_amounts_and_kitchen_units(number: str, source: str, target: str, said: str) -> None:
    assert call("convert", number=number, source=source, target=target)[0] == said


@pytest.mark.parametrize(("step", "said"), [
    ("fives", "Five, ten, fifteen, twenty."), ("sixes", "Six, twelve, eighteen."), ("twenties", "Twenty."),
    ("apples", "I did not get the number to count to.")])
def test_a_count_goes_in_steps_named_in_the_plural(step: str, said: str) -> None:
    assert call("count", stop="twenty", step=step)[0] == said


@pytest.mark.parametrize(("number", "span", "length", "due"), [
    ("half an", "hour", "half an hour", 1800.0), ("half a", "minute", "half a minute", 30.0),
    ("a", "minute", "one minute", 60.0), ("a quarter of an", "hour", "fifteen minutes", 900.0),
    ("two and a half", "minutes", "one hundred and fifty seconds", 150.0),
    ("a couple of", "minutes", "two minutes", 120.0),
])
def test_a_timer_takes_parts_of_hours_and_minutes(number: str, span: str, length: str, due: float) -> None:
    said, memory = call("remind", number=number, span=span)
    assert said == f"Okay, I will tell you in {length}."
    assert memory.reminders[0].due == due


@pytest.mark.parametrize("span", ["miles", "apples", ""])
def test_a_timer_of_no_time_is_not_set(span: str) -> None:
    said, memory = call("remind", number="two", span=span)
    assert said == "I did not get the time."
    assert not memory.reminders


def test_a_pair_of_dice_is_two() -> None:
    assert "Together that is" in call("dice", number="a pair of")[0]
