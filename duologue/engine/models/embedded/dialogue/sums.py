"""Arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots, sentence
from duologue.engine.models.embedded.dialogue.numbers import LARGEST, read_number, say_number

_NO_NUMBER = "I did not get the numbers."
_TOO_LARGE = "That number is too large for me."


def compute(left: Fraction, operator: str, right: Fraction) -> Fraction:
    """The exact result; raises ZeroDivisionError, and ValueError for an operator that is none."""
    match operator:
        case "plus" | "and" | "to":
            return left + right
        case "minus":
            return left - right
        case "times" | "multiplied by":
            return left * right
        case "divided by":
            return left / right
    raise ValueError(f"{operator!r} is no operator")


def _told(question: str, value: Fraction, memory: Memory) -> Outcome:
    if abs(value) >= LARGEST:
        return _TOO_LARGE, memory
    answer = say_number(value)
    verb = "is"
    return sentence(f"{question} {verb} {answer}"), replace(memory, result=value)


def _sum(left: Fraction | None, operator: str, right: Fraction | None, memory: Memory) -> Outcome:
    if left is None or right is None:
        return _NO_NUMBER, memory
    try:
        value = compute(left, operator, right)
    except ZeroDivisionError:
        return "Nothing can be divided by zero.", memory
    return _told(f"{say_number(left)} {operator} {say_number(right)}", value, memory)


def arithmetic(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Two numbers and an operator."""
    return _sum(read_number(slots["left"].split()), slots.get("operator", "plus"),
                read_number(slots["right"].split()), memory)


def further(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The last result and one number more."""
    if memory.result is None:
        return "I have no number to start from. Ask me, for example, what is six times seven.", memory
    return _sum(memory.result, slots["operator"], read_number(slots["right"].split()), memory)


def percent(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A share of a number."""
    share, whole = read_number(slots["share"].split()), read_number(slots["whole"].split())
    if share is None or whole is None:
        return _NO_NUMBER, memory
    return _told(f"{say_number(share)} percent of {say_number(whole)}", share * whole / 100, memory)


def square(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A number times itself."""
    number = read_number(slots["number"].split())
    if number is None:
        return _NO_NUMBER, memory
    return _told(f"{say_number(number)} squared", number * number, memory)


def root(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A square root, to two decimals."""
    number = read_number(slots["number"].split())
    if number is None:
        return _NO_NUMBER, memory
    if number < 0:
        return "A negative number has no square root that I could say.", memory
    # Six decimals of it: whether the second one is exact is then plain to see.
    value = Fraction(isqrt(int(number * 10**12)), 10**6)
    return _told(f"the square root of {say_number(number)}", value, memory)
