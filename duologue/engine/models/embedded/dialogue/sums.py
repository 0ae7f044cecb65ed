"""Arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots, sentence
from duologue.engine.models.embedded.dialogue.numbers import LARGEST, read_number, say_number

_NO_NUMBER = "I did not get the numbers."
_TOO_LARGE = "That number is too large for me."


_NO_OPERATOR = "I did not get what to do with the numbers."

_OPERATORS = {
    "plus": "plus", "and": "plus", "to": "plus", "add": "plus", "add up": "plus", "added to": "plus",
    "increased by": "plus", "sum": "plus", "total": "plus",
    "minus": "minus", "less": "minus", "subtract": "minus", "take": "minus", "take away": "minus",
    "difference": "minus",
    "times": "times", "multiplied by": "multiplied by", "multiply": "times", "product": "times",
    "divided by": "divided by", "divide": "divided by", "over": "divided by", "into": "divided by",
}
"""What callers say, to what is said of it."""
_SHARES = {"twice": ("twice", Fraction(2)), "double": ("twice", Fraction(2)), "triple": ("three times", Fraction(3)),
           "half of": ("half of", Fraction(1, 2)), "a third of": ("a third of", Fraction(1, 3)),
           "a quarter of": ("a quarter of", Fraction(1, 4))}
"""Operators of one number: what is said of it, and the factor."""


def compute(left: Fraction, operator: str, right: Fraction) -> Fraction:
    """The exact result; raises ZeroDivisionError, and ValueError for an operator that is none."""
    match _OPERATORS.get(operator):
        case "plus":
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
    return sentence(f"{question} is {say_number(value)}"), replace(memory, result=value)


def _sum(left: Fraction | None, operator: str, right: Fraction | None, memory: Memory) -> Outcome:
    if left is None or right is None:
        return _NO_NUMBER, memory
    try:
        value = compute(left, operator, right)
    except ZeroDivisionError:
        return "Nothing can be divided by zero.", memory
    except ValueError:
        return _NO_OPERATOR, memory
    return _told(f"{say_number(left)} {_OPERATORS[operator]} {say_number(right)}", value, memory)


def _share(operator: str, number: Fraction | None, memory: Memory) -> Outcome:
    if number is None:
        return _NO_NUMBER, memory
    said, factor = _SHARES[operator]
    return _told(f"{said} {say_number(number)}", factor * number, memory)


def arithmetic(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Two numbers and an operator, or one number and "twice", "half of"."""
    operator, right = slots.get("operator", "plus"), read_number(slots["right"].split())
    if operator in _SHARES:
        return _share(operator, right, memory)
    return _sum(read_number(slots["left"].split()) if "left" in slots else None, operator, right, memory)


def further(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The last result and one number more, or "twice", "half of" it."""
    if memory.result is None:
        return "I have no number to start from. Ask me, for example, what is six times seven.", memory
    if slots["operator"] in _SHARES:
        return _share(slots["operator"], memory.result, memory)
    right = read_number(slots["right"].split()) if "right" in slots else None
    return _sum(memory.result, slots["operator"], right, memory)


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
