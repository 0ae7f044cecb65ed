"""A tool's result as it is said: the values of its JSON in a plain sentence, or its text; never too long."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from duologue.engine.models.embedded.dialogue.memory import sentence
from duologue.engine.models.embedded.dialogue.numbers import LARGEST, say_number
from duologue.engine.models.embedded.dialogue.skills import split_name

LONGEST = 300
"""Characters of a result that are said: some twenty seconds."""
_PLAIN = frozenset(("result", "answer", "text", "message", "output", "summary", "content", "response", "value"))
"""Names of values that say it all by themselves."""
_DEPTH = 4
"""How deep a result is looked into."""
_MOST = 24
"""Values of a list or an object that are looked at."""
_DONE = "That is done."
_SENTENCE_END = re.compile(r"[.?!](?=\s|$)")


class _Fact(NamedTuple):
    name: str
    verb: str
    said: str


def tell(output: str) -> str:
    """What to say of ``output``, the result of a tool's work."""
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        value = output
    if isinstance(value, dict) and value.get("error"):
        return _cut(sentence(f"that did not work: {_text(value['error'], _DEPTH)}"))
    text = " ".join(_text(value, _DEPTH).split())
    return _cut(sentence(text)) if any(map(str.isalnum, text)) else _DONE


def _text(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        facts = list(islice(_facts(value, "", depth), _MOST))
        if len(facts) == 1 and facts[0].name in _PLAIN:
            return facts[0].said
        return _listed([f"the {fact.name} {fact.verb} {fact.said}" for fact in facts])
    if isinstance(value, list):
        return _listed([said for one in value[:_MOST] if (said := _text(one, depth - 1))]) if depth else ""
    return _scalar(value)


def _facts(value: dict[Any, Any], under: str, depth: int) -> Iterator[_Fact]:
    """The values in ``value``, those of an object in it by both names."""
    for key, one in value.items():
        name = f"{under} {' '.join(split_name(str(key))) or key}".strip()
        if isinstance(one, dict):
            yield from _facts(one, name, depth - 1) if depth else ()
        elif said := _text(one, depth):
            yield _Fact(name, "are" if isinstance(one, list) and len(one) > 1 else "is", said)


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        # What is no number (NaN) or beyond words stays as it is written.
        return say_number(Fraction(str(value))) if abs(value) < LARGEST else str(value)
    return str(value).strip()


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def _cut(text: str) -> str:
    """``text``, or as many of its first sentences as are not too long; of one that is, its beginning."""
    if len(text) <= LONGEST:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, LONGEST)]
    if ends:
        return text[:ends[-1]]
    return text[:LONGEST].rsplit(" ", 1)[0].rstrip(" ,;:") + "."
