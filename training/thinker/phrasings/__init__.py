"""What callers say, in many wordings: the templates of these folders, read and joined.

``skills`` has a file a skill, a list of templates; ``talk`` a file for each other intent, with what the thinker
``says`` itself where it is ``asked`` that; ``rules`` what templates refer to; ``out_of_domain`` sentences that ask for
nothing it knows. Beside them are the sentences by which its ``refusals`` are examined, ``unfinished`` sentences and
what they are asked back with, ``corrections``, behind which a ``slot`` or a ``sentence`` follows as <X>, and ``sounds``
that are no sentence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

HELD_OUT = 6
"""Of so many templates of an intent the last is kept out of training."""


class PhrasingsError(ValueError):
    """A file of phrasings that cannot be used; its text says which and why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A small talk intent: what is said, one as good as another, and the templates that ask for it."""

    says: tuple[str, ...]
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Beginnings of sentences, as templates, and the question that asks for the rest."""

    begun: tuple[str, ...]
    asks: str


@dataclass(slots=True)
class Phrasings:
    """All phrasings, templates by intent."""

    rules: dict[str, list[str]] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)
    replies: dict[str, Reply] = field(default_factory=dict)
    unfinished: list[Unfinished] = field(default_factory=list)
    corrections: dict[str, list[str]] = field(default_factory=dict)
    backchannels: list[str] = field(default_factory=list)
    hesitations: list[str] = field(default_factory=list)
    noises: list[str] = field(default_factory=list)
    out_of_domain: dict[str, list[str]] = field(default_factory=dict)

    @property
    def asked(self) -> dict[str, list[str]]:
        """The templates of every intent, skills' and replies'."""
        return self.calls | {name: list(reply.asked) for name, reply in self.replies.items()}


def split(templates: Sequence[str]) -> tuple[list[str], list[str]]:
    """``templates`` to train on, and those held out."""
    return ([text for index, text in enumerate(templates) if index % HELD_OUT != HELD_OUT - 1],
            [text for index, text in enumerate(templates) if index % HELD_OUT == HELD_OUT - 1])


def load(folder: Traversable | None = None) -> Phrasings:
    """The phrasings of ``folder``, of this one without any.

    Raises PhrasingsError for a part that is unknown, a rule that two files have, or a skill and a reply of one name.
    """
    folder = folder or files(__package__)
    found = Phrasings(calls=dict(_read(folder / "skills")))
    for intent, reply in _read(folder / "talk"):
        found.replies[intent] = Reply(tuple(reply["says"]), tuple(reply["asked"]))
    both = set(found.calls) & set(found.replies)
    if both:
        raise PhrasingsError(f"a skill and a reply are both called {min(both)}: rename the reply")
    for file, rules in _read(folder / "rules"):
        twice = set(rules) & set(found.rules)
        if twice:
            raise PhrasingsError(f"rules/{file}.yaml: {min(twice)} is in another file too")
        found.rules |= rules
    for file, parts in _read(folder):
        _join(found, file, parts)
    found.out_of_domain["train"] = [text for _, texts in _read(folder / "out_of_domain") for text in texts]
    return found


def _read(folder: Traversable) -> Iterator[tuple[str, Any]]:
    """Each file of ``folder``: its name and what is in it."""
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        name, dot, kind = file.name.rpartition(".")
        if dot and kind == "yaml":
            yield name, yaml.safe_load(file.read_text(encoding="utf-8"))


def _join(found: Phrasings, file: str, parts: Mapping[str, Any]) -> None:
    for part, value in parts.items():
        match part:
            case "corrections" | "out_of_domain":
                getattr(found, part).update(value)
            case "unfinished":
                found.unfinished.extend(Unfinished(tuple(entry["begun"]), entry["asks"]) for entry in value)
            case "backchannels" | "hesitations" | "noises":
                getattr(found, part).extend(value)
            case _:
                raise PhrasingsError(f"{file}.yaml: there is no part {part!r}")
