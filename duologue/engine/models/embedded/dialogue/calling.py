"""Whether a sentence asks for a tool, and with which arguments; what is missing is asked back for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.engine.models.embedded.dialogue.arguments import Arguments, answered, heard
from duologue.engine.models.embedded.dialogue.memory import Asking
from duologue.engine.models.embedded.dialogue.skills import Parameter, Skill
from duologue.engine.models.embedded.dialogue.templates import Parse

_OPEN_PLACES = frozenset(("repeat", "remind", "spell", "set_name"))
"""Intents in whose places any words may stand: those words ask for nothing."""
_FEW = 4
"""Choices that are named when one of them is asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call that the sentence asks for; ``arguments`` is a JSON object as text."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Question:
    """What has to be known before the call can be made."""

    text: str
    asking: Asking


def wanted(skills: Sequence[Skill], words: Sequence[str], parse: Parse | None) -> Skill | None:
    """The tool that ``words``, understood as ``parse``, ask for: the one whose name they say most of."""
    asking = list(words)
    if parse is not None and parse.intent in _OPEN_PLACES:
        for text in parse.slots.values():
            asking = [word for word in asking if word not in text.split()]
    fits = [skill for skill in skills if skill.asked_by(asking) or (parse is not None and skill.serves(parse.intent))]
    return max(fits, key=lambda skill: len(skill.words), default=None)


def request(skills: Sequence[Skill], words: Sequence[str], parse: Parse | None,
            asking: Asking | None) -> Request | Question | None:
    """What a sentence asks of the tools; ``asking`` is what the caller was asked for just before."""
    skill = wanted(skills, words, parse)
    if skill is not None:
        return _ready(skill, heard(skill, words, parse.slots if parse is not None else {}))
    if asking is None or (parse is not None and parse.intent not in ("fragment", "yes", "no", "backchannel")):
        return None
    skill = next((skill for skill in skills if skill.name == asking.tool), None)
    parameter = next((one for one in skill.parameters if one.name == asking.parameter), None) if skill else None
    if skill is None or parameter is None:
        return None
    value = answered(parameter, words)
    if value is None:
        return Question(_question(parameter), asking) if parse is None else None
    arguments = json.loads(asking.arguments) | {parameter.name: [value] if parameter.many else value}
    return _ready(skill, arguments)


def _ready(skill: Skill, arguments: Arguments) -> Request | Question:
    missing = next((one for one in skill.parameters if one.required and one.name not in arguments), None)
    text = json.dumps(arguments, ensure_ascii=False)
    if missing is None:
        return Request(skill.name, text)
    return Question(_question(missing), Asking(skill.name, text, missing.name))


def _question(parameter: Parameter) -> str:
    name = " ".join(parameter.words)
    if 1 < len(parameter.choices) <= _FEW:
        *most, last = (" ".join(str(choice).lower().split("_")) for choice in parameter.choices)
        return f"Which {name}: {', '.join(most)} or {last}?"
    if parameter.kind in ("number", "whole"):
        return f"Which number shall I take for the {name}?"
    return f"Which {name}?"
