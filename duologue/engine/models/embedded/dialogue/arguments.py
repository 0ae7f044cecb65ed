"""What a sentence says of a tool's arguments: choices and numbers heard, and what follows a fitting preposition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from duologue.engine.models.embedded.dialogue.numbers import NUMBER_WORDS, read_number, spelled_out
from duologue.engine.models.embedded.dialogue.skills import Parameter, Skill, singular, split_name

Value = str | int | float | bool
Arguments = dict[str, Value | list[Value]]

_PREPOSITIONS = ("in", "at", "for", "of", "to", "from", "on", "about", "with", "near", "by", "called", "named", "under")
_FITS: tuple[tuple[str, str], ...] = (
    ("destination to target recipient", "to"), ("origin from source departure", "from"),
    ("city location place town country region state area where address", "in at near for of from to"),
    ("date day when time", "on at for by"), ("topic subject about", "about on of"),
    ("name person contact customer user who", "called named for to of with by"))
"""Words of a property's name, and the prepositions that its value follows, the likeliest first."""
_WHOLE = frozenset(("query", "question", "text", "expression", "prompt", "input", "request", "message"))
"""Names of properties whose value is the sentence itself."""
_ENDS = ("please", "now", "thanks", "thank you", "for me", "right now", "today", "tonight", "tomorrow")
"""What is no part of a value at its end."""
_NOT_VALUES = frozenset(("me", "it", "that", "this", "you", "us"))
_DETERMINERS = ("the", "a", "an", "my", "your")
_NUMBERED = frozenset(("id", "number", "code"))
"""Words in the names of texts that are numbers where numbers are heard."""
_DAYS = ("today", "tonight", "tomorrow")
_DATED = frozenset(("date", "day", "when"))
"""Words in the names of texts that such a day may be."""
_TAKEN = "|"
"""Stands where a value was: no other value is there, or goes on over it."""
_LEADS = ("it is", "it's", "that is", "i mean", "i said", "the", "in", "at", "for", "to", "from", "on", "about", "with")
"""What stands before a value that was asked back for."""


def heard(skill: Skill, words: Sequence[str], slots: Mapping[str, str]) -> Arguments:
    """The arguments found in ``words`` (lower case); ``slots`` are those of the intent they were understood as."""
    rest = _without_ends(words)
    found: Arguments = {}
    day = next((word for word in words if word in _DAYS), None)
    # Those that only one place can mean take theirs before those that any would do for.
    for parameter in sorted(skill.parameters, key=_freedom):
        value = _slot(parameter, slots) if not parameter.choices else None
        if value is None:
            value = _said(parameter, rest, skill)
        if value is None and parameter.kind == "text" and _DATED & set(parameter.words):
            value = day
        if value is not None:
            found[parameter.name] = [value] if parameter.many else value
    return found


def _freedom(parameter: Parameter) -> int:
    if parameter.choices:
        return 0
    if parameter.kind != "text" or _NUMBERED & set(parameter.words):
        return 1
    return 2 if _fitting(parameter) else 3


def answered(parameter: Parameter, words: Sequence[str]) -> Value | None:
    """The value of ``parameter`` in what was said when asked for it; None where there is none."""
    rest = _without_ends(words)
    if parameter.choices:
        return _choice(parameter, rest)
    if parameter.kind == "flag":
        return not {"no", "not", "nope", "off", "without"} & set(rest)
    if parameter.kind != "text":
        return _number(parameter, rest)
    text = " ".join(rest)
    for _ in range(2):
        for lead in _LEADS:
            text = text.removeprefix(f"{lead} ")
    return text or None


def _said(parameter: Parameter, words: list[str], skill: Skill) -> Value | None:
    """The value in ``words``, in which ``_TAKEN`` stands then where it was."""
    if parameter.choices:
        return _choice(parameter, words)
    if parameter.kind == "flag":
        named = {singular(word) for word in parameter.words} <= {singular(word) for word in words}
        return named if named or parameter.required else None
    if parameter.kind != "text":
        return _number(parameter, words)
    if _WHOLE & set(parameter.words):
        return " ".join(word for word in words if word != _TAKEN)
    if _NUMBERED & set(parameter.words) and (number := _number(parameter, words)) is not None:
        return str(number)
    for preposition in _fitting(parameter) or _PREPOSITIONS:
        for before, start, end in _phrases(words):
            phrase = words[start:end]
            if before == preposition and not {singular(word) for word in phrase} <= skill.words | _NOT_VALUES:
                words[start:end] = [_TAKEN]
                return " ".join(phrase)
    return None


def _fitting(parameter: Parameter) -> tuple[str, ...]:
    for names, prepositions in _FITS:
        if set(names.split()) & set(parameter.words):
            return tuple(prepositions.split())
    return ()


def _slot(parameter: Parameter, slots: Mapping[str, str]) -> Value | None:
    """What the intent captured under the property's own name."""
    text = slots.get(parameter.name.lower())
    if text is None or parameter.kind == "flag":
        return None
    if parameter.kind == "text":
        return text
    number = read_number(text.split())
    return None if number is None else _as_json(number, parameter)


def _choice(parameter: Parameter, words: list[str]) -> Value | None:
    said = [singular(word) for word in words]
    for choice in parameter.choices:
        name = [singular(word) for word in
                (split_name(choice) if isinstance(choice, str) else spelled_out(str(choice)).split())]
        for start in range(len(said) - len(name) + 1) if name else ():
            if said[start:start + len(name)] == name:
                words[start:start + len(name)] = [_TAKEN]
                return choice
    return None


def _number(parameter: Parameter, words: list[str]) -> int | float | None:
    """The first number in ``words``, as long as it can be."""
    for start, word in enumerate(words):
        for end in range(len(words), start, -1) if word in NUMBER_WORDS else ():
            if (number := read_number(words[start:end])) is not None:
                words[start:end] = [_TAKEN]
                return _as_json(number, parameter)
    return None


def _as_json(value: Fraction, parameter: Parameter) -> int | float:
    return round(value) if parameter.kind == "whole" or value.denominator == 1 else float(value)


def _phrases(words: Sequence[str]) -> list[tuple[str, int, int]]:
    """Each preposition in ``words``, and where what follows it begins and ends: before the next one."""
    places = [place for place, word in enumerate(words) if word in _PREPOSITIONS or word == _TAKEN]
    found = []
    for place, end in zip(places, [*places[1:], len(words)], strict=False):
        start = place + 1
        while start < end and words[start] in _DETERMINERS:
            start += 1
        if start < end:
            found.append((words[place], start, end))
    return found


def _without_ends(words: Sequence[str]) -> list[str]:
    text = " ".join(words)
    ended = True
    while ended:
        ended = False
        for end in _ENDS:
            if text.endswith(f" {end}"):
                text, ended = text.removesuffix(f" {end}"), True
    return text.split()
