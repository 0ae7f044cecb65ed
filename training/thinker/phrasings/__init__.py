"""What callers say, in many wordings: the templates of these files, read and joined.

A file has some of these parts: ``rules`` for its templates; ``calls``, the templates of each skill; ``replies``, what
the thinker ``says`` itself where it is ``asked`` something; ``unfinished`` sentences and what they are asked back with;
``corrections``, behind which a ``slot`` or a ``sentence`` follows as <X>; ``backchannels``, ``hesitations`` and
``noises``; and ``out_of_domain``, with what it ``says`` to that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
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


def load() -> Phrasings:
    """Every file of this folder; raises PhrasingsError for a part that is unknown, or an intent that two files have."""
    found = Phrasings()
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".yaml"):
            _join(found, file.name, yaml.safe_load(file.read_text(encoding="utf-8")))
    both = set(found.calls) & set(found.replies)
    if both:
        raise PhrasingsError(f"a skill and a reply are both called {min(both)}: rename the reply")
    return found


def _join(found: Phrasings, file: str, parts: Mapping[str, Any]) -> None:
    for part, value in parts.items():
        match part:
            case "rules" | "calls" | "corrections" | "out_of_domain":
                _add(getattr(found, part), file, value)
            case "replies":
                _add(found.replies, file, {name: Reply(tuple(reply["says"]), tuple(reply["asked"]))
                                           for name, reply in value.items()})
            case "unfinished":
                found.unfinished.extend(Unfinished(tuple(entry["begun"]), entry["asks"]) for entry in value)
            case "backchannels" | "hesitations" | "noises":
                getattr(found, part).extend(value)
            case _:
                raise PhrasingsError(f"{file}: there is no part {part!r}")


def _add(all_: dict[str, Any], file: str, more: Mapping[str, Any]) -> None:
    for name, value in more.items():
        if name in all_:
            raise PhrasingsError(f"{file}: {name} is in another file too")
        all_[name] = value
