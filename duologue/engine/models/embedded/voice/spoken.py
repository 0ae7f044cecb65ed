"""From a token as written ("10:30", "$5", "USB") to the words that are said for it.

The readings are those of flite's ``us_text.c``, so that the voice says what its source would; where flite reads what
nobody means ("10a.m."), the sense comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from duologue.engine.models.embedded.dialogue.numbers import DIGITS, LARGEST, say_whole

_CLITICS = ("'s", "'ll", "'ve", "'d")
"""Said as words of their own behind any word."""
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
             "twelve": "twelfth"}
_ABBREVIATIONS = {
    "mr": "mister", "mrs": "missus", "ms": "miz", "dr": "doctor", "st": "saint", "prof": "professor", "vs": "versus",
    "jr": "junior", "sr": "senior", "etc": "et cetera", "approx": "approximately", "ft": "feet", "lb": "pounds",
    "lbs": "pounds", "oz": "ounces", "km": "kilometers", "kg": "kilograms", "cm": "centimeters",
    "mph": "miles per hour", "kmh": "kilometers per hour", "hz": "hertz", "khz": "kilohertz", "mhz": "megahertz",
    "ghz": "gigahertz", "ml": "milliliters", "hr": "hour", "hrs": "hours", "min": "minutes", "sec": "seconds",
}
_UNITS = {"m": "meters", "g": "grams", "l": "liters", "s": "seconds", "h": "hours", "c": "celsius", "f": "fahrenheit",
          "k": "thousand", "in": "inches", "mm": "millimeters", "am": "A M", "pm": "P M"}
"""Read so only directly behind a number."""
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")
_PLURAL_FRACTIONS = {2: "half", 3: "third", 4: "quarter"}
_VOWEL = re.compile("[aeiouyAEIOUY]")
_PART = re.compile(r"""
      (?P<clock>\d{1,2}:\d\d(?::\d\d)?)
    | (?P<date>\d{1,2}/\d{1,2}/\d{2,4})
    | (?P<fraction>\d{1,2}/\d{1,2})(?!\d)
    | (?P<money>\$\d[\d,]*(?:\.\d+)?)
    | (?P<ordinal>\d+(?:st|nd|rd|th))(?![A-Za-z])
    | (?P<decades>\d\d(?:\d\d)?s)(?![A-Za-z])
    | (?P<number>\d+(?:,\d{3})*(?:\.\d+)?)
    | (?P<percent>%)
    | (?P<dotted>(?:[A-Za-z]\.)+[A-Za-z]?)(?![A-Za-z])
    | (?P<word>[A-Za-z]+(?:'[A-Za-z]+)*)
    | (?P<slash>/)
    | (?P<dollar>\$)
    | (?P<dot>\.(?=[A-Za-z\d]))
""", re.VERBOSE)


def words(token: str) -> list[str]:
    """The words said for ``token`` (ASCII, without white space), in lower case; a capital is the name of a letter."""
    said: list[str] = []
    if token.startswith("-") and token[1:2].isdigit():
        said.append("minus")
    behind_number = False
    for match in _PART.finditer(token):
        kind, part = str(match.lastgroup), match.group()
        if kind == "word" and behind_number and part.lower() in _UNITS:
            said += _UNITS[part.lower()].split()
        else:
            said += _said(kind, part)
        behind_number = kind in ("number", "clock")
    return said


def _said(kind: str, part: str) -> list[str]:
    match kind:
        case "clock":
            return _clock(part)
        case "date":
            return _date(part)
        case "fraction":
            return _fraction(part)
        case "money":
            return _money(part)
        case "ordinal":
            return _ordinal(int(part[:-2]))
        case "decades":
            return _plural(_year(int(part[:-1])))
        case "number":
            return _number(part)
        case "percent":
            return ["percent"]
        case "dotted":
            return list(part.replace(".", "").upper())
        case "slash":
            return ["slash"]
        case "dollar":
            return ["dollars"]
        case "dot":
            return ["dot"]
        case _:
            return list(_letters(part))


def _letters(part: str) -> Iterator[str]:
    """A run of letters: a word with its clitics, an abbreviation, or names of letters."""
    if part.lower() in _ABBREVIATIONS:
        yield from _ABBREVIATIONS[part.lower()].split()
        return
    stem, clitic = part, ""
    for ending in _CLITICS:
        if part.lower().endswith(ending):
            stem, clitic = part[:-len(ending)], ending
    stem = stem.replace("'", "")
    if stem.lower() in _SOUNDS or stem == "OK":
        yield stem.lower()
    elif len(stem) == 1 and stem.lower() not in "ai":
        yield stem.upper()
    elif not _VOWEL.search(stem) or (stem.isupper() and 1 < len(stem) <= 3 and stem not in _SHOUTED):
        yield from stem.upper()
    else:
        yield stem.lower()
    if clitic:
        yield clitic


_SOUNDS = frozenset(["hm", "hmm", "mm", "mhm", "shh"])
"""Said as they are, though they have no vowel."""
_SHOUTED = frozenset([
    "AM", "AN", "AND", "ANY", "ARE", "AS", "AT", "BE", "BIG", "BUT", "BY", "CAN", "DAY", "DID", "DO", "END", "FOR",
    "GET", "GO", "HAD", "HAS", "HE", "HER", "HIM", "HIS", "HOT", "HOW", "IF", "IN", "IS", "IT", "ITS", "LET", "MAY",
    "ME", "MY", "NEW", "NO", "NOT", "NOW", "OF", "OFF", "OLD", "ON", "ONE", "OR", "OUR", "OUT", "RED", "RUN", "SAY",
    "SEE", "SHE", "SIX", "SO", "TEN", "THE", "TO", "TOO", "TOP", "TWO", "UP", "USE", "WAS", "WAY", "WE", "WHO",
    "WHY", "YES", "YET", "YOU"])
"""Short words that are no letters' names even where they stand in capitals."""


def _whole(value: int) -> list[str]:
    return say_whole(value).split() if value < LARGEST else [DIGITS[int(digit)] for digit in str(value)]


def _digits(text: str) -> list[str]:
    return [DIGITS[int(digit)] for digit in text]


def _number(part: str) -> list[str]:
    whole, _, decimals = part.partition(".")
    plain = whole.replace(",", "")
    if (len(plain) > 1 and plain[0] == "0") or int(plain) >= LARGEST:
        said = _digits(plain)
    elif len(whole) == 4 and not decimals and 1100 <= int(whole) < 2100:
        said = _year(int(whole))
    else:
        said = _whole(int(plain))
    return [*said, "point", *_digits(decimals)] if decimals else said


def _year(value: int) -> list[str]:
    hundreds, rest = divmod(value, 100)
    if value < 100 or 2000 <= value < 2010 or not value % 1000:
        return _whole(value)
    if not rest:
        return [*_whole(hundreds), "hundred"]
    return [*_whole(hundreds), *(["oh"] if rest < 10 else []), *_whole(rest)]


def _ordinal(value: int) -> list[str]:
    *before, last = _whole(value)
    if last in _ORDINALS:
        return [*before, _ORDINALS[last]]
    return [*before, f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th"]


def _plural(said: list[str]) -> list[str]:
    last = said[-1]
    return [*said[:-1], f"{last[:-1]}ies" if last.endswith("y") else f"{last}s"]


def _clock(part: str) -> list[str]:
    hour, minute, *second = (int(value) for value in part.split(":"))
    if second:
        return [*_whole(hour), *_whole(minute), *_whole(second[0])]
    if not minute:
        return [*_whole(hour), *(["hundred"] if hour > 12 else ["oclock"])]
    return [*_whole(hour), *(["oh"] if minute < 10 else []), *_whole(minute)]


def _date(part: str) -> list[str]:
    month, day, year = (int(value) for value in part.split("/"))
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return [*_whole(month), "slash", *_whole(day), "slash", *_whole(year)]
    return [_MONTHS[month - 1].lower(), *_ordinal(day), *_year(year)]


def _fraction(part: str) -> list[str]:
    above, below = (int(value) for value in part.split("/"))
    if not below or above >= below:
        return [*_whole(above), "slash", *_whole(below)]
    name = [_PLURAL_FRACTIONS[below]] if below in _PLURAL_FRACTIONS else _ordinal(below)
    if above > 1:
        name = ["halves"] if below == 2 else _plural(name)
    return [*_whole(above), *name]


def _money(part: str) -> list[str]:
    whole, _, cents = part[1:].replace(",", "").partition(".")
    if len(cents) > 2:
        return [*_number(part[1:]), "dollars"]
    said = [*_whole(int(whole)), "dollar" if int(whole) == 1 else "dollars"]
    if cents and int(cents.ljust(2, "0")):
        value = int(cents.ljust(2, "0"))
        said += [*_whole(value), "cent" if value == 1 else "cents"]
    return said if int(whole) or len(said) == 2 else said[2:]
