"""Numbers in words: read from speech or typing, and said so that a synthesizer says them well."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
         "nineteen")
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**9, "billion"), (10**6, "million"), (10**3, "thousand"))

LARGEST = 10**12
"""Numbers of this size and beyond have no words here."""

_SMALL = {word: value for value, word in enumerate((*DIGITS, *TEENS))} | {
    word: 10 * (value + 2) for value, word in enumerate(TENS)}
_BIG = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
NUMBER_WORDS = frozenset(_SMALL) | frozenset(_BIG) | {"hundred", "minus", "negative", "point"}

RULES = {
    "digit": [" | ".join(DIGITS[1:])],
    "teen": [" | ".join(TEENS)],
    "tens": [" | ".join(TENS)],
    "below_hundred": ["<digit>", "<teen>", "<tens> [<digit>]"],
    "below_thousand": ["<below_hundred>", "(a | <digit>) hundred [[and] <below_hundred>]"],
    "number": ["zero", "<below_thousand>", "<below_hundred> hundred",
               "(a | <below_hundred>) thousand [[and] <below_thousand>]"],
    "real": ["[minus] <number> [point <digit> [<digit>]]"],
}
"""The same numbers as grammar rules: whole ones up to 99 999 by word, "real" with sign and two decimals."""


def _whole(words: Sequence[str]) -> int | None:
    """Reads words such as "two thousand and twelve"; None where they are no whole number."""
    total = group = 0
    last = LARGEST  # the size of the word before: each must be smaller than the one before it
    for i, word in enumerate(words):
        if word == "a" and i + 1 < len(words) and words[i + 1] in ("hundred", *_BIG) and not group:
            group, last = 1, 10
        elif word == "and":
            if not (total or group) or i + 1 == len(words) or words[i - 1] not in ("hundred", *_BIG):
                return None
        elif word in _SMALL:
            value = _SMALL[word]
            size = 1 if value < 10 else 10
            room = last > 10 or (last == 10 and size == 1)
            if not room or (value == 0 and len(words) > 1):
                return None
            group, last = group + value, (size if value not in range(10, 20) else 1)
        elif word == "hundred":
            if not 0 < group < 100:
                return None
            group, last = group * 100, 100
        elif word in _BIG:
            scale = _BIG[word]
            if not group or (total and total % (scale * 1000)):
                return None
            total, group, last = total + group * scale, 0, 1000
        else:
            return None
    return total + group if words else None


def read_number(words: Sequence[str]) -> Fraction | None:
    """The number that ``words`` (lower case) say, digits allowed ("25", "2.5"); None where they say none."""
    rest = list(words)
    sign = 1
    if rest and rest[0] in ("minus", "negative"):
        sign, rest = -1, rest[1:]
    if len(rest) == 1 and re.fullmatch(r"\d{1,12}(\.\d{1,6})?", rest[0]):
        return sign * Fraction(rest[0])
    if "point" in rest:
        at = rest.index("point")
        decimals = [DIGITS.index(word) if word in DIGITS else -1 for word in rest[at + 1:]]
        whole = _whole(rest[:at])
        if whole is None or not decimals or min(decimals) < 0:
            return None
        fraction = sum((Fraction(digit, 10 ** (place + 1)) for place, digit in enumerate(decimals)), Fraction(0))
        return sign * (whole + fraction)
    whole = _whole(rest)
    return None if whole is None else Fraction(sign * whole)


_PARTS = {"a": Fraction(1), "an": Fraction(1), "half": Fraction(1, 2), "quarter": Fraction(1, 4),
          "quarters": Fraction(1, 4), "third": Fraction(1, 3), "thirds": Fraction(1, 3)}
_PACKS = {"dozen": 12, "couple": 2, "pair": 2}


def read_amount(words: Sequence[str]) -> Fraction | None:
    """Like :func:`read_number`, and "half an", "three quarters of a", "two and a half", "a dozen", "a couple of"."""
    number = read_number(words)
    if number is not None:
        return number
    rest = [word for word in words if word != "of"]
    if len(rest) > 1 and rest[-1] in ("a", "an"):
        rest = rest[:-1]
    if rest and rest[-1] in _PACKS:
        packs = read_amount(rest[:-1]) if rest[:-1] else Fraction(1)
        return None if packs is None else packs * _PACKS[rest[-1]]
    if "and" in rest and (cut := len(rest) - 1 - rest[::-1].index("and")):
        whole, part = read_number(rest[:cut]), _part(rest[cut + 1:])
        return None if whole is None or part is None else whole + part
    return _part(rest)


def _part(words: Sequence[str]) -> Fraction | None:
    """"a", "half", "a quarter", "three quarters"."""
    if not words or words[-1] not in _PARTS:
        return None
    times = read_number(words[:-1]) if words[:-1] not in ([], ["a"]) else Fraction(1)
    return None if times is None else times * _PARTS[words[-1]]


def read_whole(words: Sequence[str]) -> int | None:
    """Like :func:`read_number`, for whole numbers only."""
    number = read_number(words)
    return int(number) if number is not None and number.denominator == 1 else None


def _below_thousand(value: int) -> list[str]:
    words: list[str] = []
    if value >= 100:
        words += [DIGITS[value // 100], "hundred"]
        value %= 100
        if value:
            words.append("and")
    if value >= 20:
        words.append(TENS[value // 10 - 2])
        value %= 10
        if value:
            words.append(DIGITS[value])
    elif value >= 10:
        words.append(TEENS[value - 10])
    elif value:
        words.append(DIGITS[value])
    return words


def say_whole(value: int) -> str:
    """``value`` in words: "minus one hundred and five"; beyond LARGEST it is left in digits."""
    if abs(value) >= LARGEST:
        return str(value)
    if value == 0:
        return DIGITS[0]
    words = ["minus"] if value < 0 else []
    rest = abs(value)
    for scale, name in _SCALES:
        if rest >= scale:
            words += [*_below_thousand(rest // scale), name]
            rest %= scale
            if 0 < rest < 100:
                words.append("and")
    return " ".join(words + _below_thousand(rest))


def say_number(value: Fraction, places: int = 2) -> str:
    """``value`` in words with at most ``places`` decimals; one that had to be rounded begins with "about"."""
    if value.denominator == 1:
        return say_whole(int(value))
    scaled = round(abs(value) * 10**places)
    about = "" if Fraction(scaled, 10**places) == abs(value) else "about "
    whole, decimals = divmod(scaled, 10**places)
    if not scaled:
        return "almost zero"
    digits = f"{decimals:0{places}d}".rstrip("0")
    text = say_whole(whole)
    if digits:
        text += " point " + " ".join(DIGITS[int(digit)] for digit in digits)
    return about + ("minus " if value < 0 else "") + text


def spelled_out(token: str) -> str:
    """A typed token of digits in words ("25" is "twenty five"); anything else unchanged."""
    if re.fullmatch(r"-?\d{1,11}(\.\d{1,6})?", token):
        sign, digits = ("minus ", token[1:]) if token.startswith("-") else ("", token)
        whole, _, decimals = digits.partition(".")
        text = sign + say_whole(int(whole))
        if decimals:
            text += " point " + " ".join(DIGITS[int(digit)] for digit in decimals)
        return text
    return token
