"""Conversion of units."""

from __future__ import annotations

from fractions import Fraction

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots, sentence
from duologue.engine.models.embedded.dialogue.numbers import LARGEST, read_amount, say_number

_UNITS: dict[str, tuple[str, str, Fraction]] = {}
"""Each name to its kind, its plural and its size in the kind's base unit."""

# Metre, kilogram, litre (US customary measures, NIST Handbook 44 appendix C), second.
for _kind, _singular, _plural, _size in (
    ("length", "millimeter", "millimeters", "0.001"), ("length", "centimeter", "centimeters", "0.01"),
    ("length", "meter", "meters", "1"), ("length", "kilometer", "kilometers", "1000"),
    ("length", "inch", "inches", "0.0254"), ("length", "foot", "feet", "0.3048"),
    ("length", "yard", "yards", "0.9144"), ("length", "mile", "miles", "1609.344"),
    ("weight", "gram", "grams", "0.001"), ("weight", "kilogram", "kilograms", "1"),
    ("weight", "kilo", "kilos", "1"), ("weight", "ounce", "ounces", "0.028349523125"),
    ("weight", "pound", "pounds", "0.45359237"),
    ("volume", "liter", "liters", "1"), ("volume", "pint", "pints", "0.473176473"),
    ("volume", "gallon", "gallons", "3.785411784"), ("volume", "quart", "quarts", "0.946352946"),
    ("volume", "cup", "cups", "0.2365882365"), ("volume", "tablespoon", "tablespoons", "0.01478676478125"),
    ("volume", "teaspoon", "teaspoons", "0.00492892159375"),
    ("time", "second", "seconds", "1"), ("time", "minute", "minutes", "60"), ("time", "hour", "hours", "3600"),
    ("time", "day", "days", "86400"), ("time", "week", "weeks", "604800"), ("time", "year", "years", "31536000"),
):
    for _name in (_singular, _plural):
        _UNITS[_name] = (_kind, _plural, Fraction(_size))
_DEGREES = frozenset(("fahrenheit", "celsius"))
_SINGULAR = {plural: name for name, (_, plural, _) in _UNITS.items() if name != plural}


def seconds(number: Fraction, span: str) -> Fraction | None:
    """``number`` of "seconds", "minutes" or "hours", in seconds; None for what is no span of time."""
    kind, _, size = _UNITS.get(span, ("", "", Fraction(0)))
    return number * size if kind == "time" else None


def counted(number: Fraction, unit: str) -> str:
    """"one mile", "two miles"."""
    plural = _UNITS[unit][1]
    return f"{say_number(number)} {_SINGULAR[plural] if number == 1 else plural}"


def convert_value(number: Fraction, source: str, target: str) -> Fraction | None:
    """``number`` of ``source`` in ``target``; None where the two measure different things."""
    if source in _DEGREES and target in _DEGREES:
        if source == target:
            return number
        return (number - 32) * Fraction(5, 9) if target == "celsius" else number * Fraction(9, 5) + 32
    if source in _DEGREES or target in _DEGREES or _UNITS[source][0] != _UNITS[target][0]:
        return None
    return number * _UNITS[source][2] / _UNITS[target][2]


def convert(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A quantity in another unit."""
    source, target = (slots[slot].removeprefix("degrees ") for slot in ("source", "target"))
    for unit in (source, target):
        if unit not in _UNITS and unit not in _DEGREES:
            return f"I do not know the unit {unit}.", memory
    number = read_amount(slots["number"].split()) if "number" in slots else Fraction(1)
    if number is None:
        return "I did not get the number.", memory
    value = convert_value(number, source, target)
    if value is None:
        return f"{source.capitalize()} and {target} do not measure the same thing.", memory
    if abs(value) >= LARGEST:
        return "That number is too large for me.", memory
    if source in _UNITS:
        return sentence(f"{counted(number, source)} {'is' if number == 1 else 'are'} {counted(value, target)}"), memory
    return sentence(f"{say_number(number)} degrees {source} are {say_number(value, 1)} degrees {target}"), memory
