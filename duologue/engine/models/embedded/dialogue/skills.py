"""A session's tools as the dialogue sees them: the words that ask for each, and what it has to be told."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from duologue.engine.messages import Tool

Kind = Literal["text", "number", "whole", "flag"]

_KINDS: dict[str, Kind] = {"string": "text", "number": "number", "integer": "whole", "boolean": "flag"}
_COMMON = frozenset((
    "a", "an", "the", "of", "for", "to", "from", "by", "in", "at", "with", "and", "or", "my", "your", "this",
    "that", "is", "it", "get", "set", "fetch", "find", "look", "lookup", "search", "check", "show", "list", "tell",
    "give", "read", "do", "make", "run", "use", "create", "add", "new", "query", "request", "current", "info",
    "information", "data", "detail", "details", "function", "tool", "api"))
"""Words of a tool's name that say little of what it is for."""
_MEANS: dict[str, frozenset[str]] = {
    intent: frozenset(words.split()) for intents, words in (
        ("time", "time clock now"), ("date weekday", "date day today calendar"),
        ("arithmetic percent square root further", "calculate calculator calculation compute math sum arithmetic"),
        ("convert", "convert conversion converter unit units measure"),
        ("remind", "remind reminder reminders timer alarm"), ("reminders", "reminders"),
        ("dice", "roll dice die"), ("coin", "flip toss coin"), ("story", "story"), ("joke", "joke"),
        ("farewell", "end hang up call goodbye")) for intent in intents.split()}
"""Words of the names of tools that are for what the dialogue understands as an intent."""


def split_name(name: str) -> tuple[str, ...]:
    """The words of a name in snake, kebab or camel case, in lower case."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def singular(word: str) -> str:
    """``word`` without the s of a plural, so that "lights" is "light"."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@dataclass(frozen=True, slots=True)
class Parameter:
    """One property of a tool's arguments; ``choices`` are the values it may have, where they are few."""

    name: str
    kind: Kind
    required: bool
    choices: tuple[str | int | float, ...] = ()
    many: bool = False
    """Whether it is a list of such values."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of its name."""
        return split_name(self.name)


@dataclass(frozen=True, slots=True)
class Skill:
    """One tool."""

    name: str
    words: frozenset[str]
    """What a sentence must hold to ask for it, in the singular."""
    parameters: tuple[Parameter, ...]

    @property
    def title(self) -> str:
        """Its name in words."""
        return " ".join(split_name(self.name))

    def asked_by(self, words: Sequence[str]) -> bool:
        """Whether ``words`` (lower case) hold all that the tool's name is about."""
        return self.words <= {singular(word) for word in words}

    def serves(self, intent: str) -> bool:
        """Whether it is for what the dialogue understands as ``intent``."""
        return self.words <= {singular(word) for word in _MEANS.get(intent, ())}


def skills(tools: Sequence[Tool]) -> tuple[Skill, ...]:
    """The tools a dialogue can ask for: those whose required arguments can be said in words."""
    found = []
    for tool in tools:
        schema = json.loads(tool.parameters)
        properties = schema.get("properties")
        required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
        parameters = [_parameter(name, rule, name in required)
                      for name, rule in (properties if isinstance(properties, dict) else {}).items()]
        known = tuple(parameter for parameter in parameters if parameter is not None)
        words = _about(tool.name)
        if words and set(required) <= {parameter.name for parameter in known}:
            found.append(Skill(tool.name, words, known))
    return tuple(found)


def _about(name: str) -> frozenset[str]:
    words = split_name(name)
    return frozenset(map(singular, [word for word in words if word not in _COMMON] or words))


def _parameter(name: str, rule: Any, required: bool) -> Parameter | None:
    """What can be said of a property; None for one whose values are no words or numbers."""
    many = False
    rule = _told(rule)
    if rule.get("type") == "array":
        many, rule = True, _told(rule.get("items"))
    choices = tuple(value for value in _list(rule.get("enum", [rule["const"]] if "const" in rule else []))
                    if isinstance(value, str | int | float) and not isinstance(value, bool))
    given = rule.get("type")
    kind = _KINDS.get(given) if isinstance(given, str) else None
    if kind is None and not choices:
        return None
    return Parameter(name, kind or "text", required, choices, many)


def _told(rule: Any) -> dict[str, Any]:
    """The part of a property's schema that is not "or nothing"."""
    if not isinstance(rule, dict):
        return {}
    for key in ("anyOf", "oneOf"):
        for other in _list(rule.get(key)):
            if isinstance(other, dict) and other.get("type") != "null":
                return other
    if isinstance(rule.get("type"), list):
        return {**rule, "type": next((name for name in rule["type"] if name != "null"), None)}
    return rule


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
