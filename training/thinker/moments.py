"""What the thinker learns from: moments of dialogues, each with the answer that is wanted in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.engine.models.embedded.thinking.format import Answer, Call, Heard

LISTEN = Answer()
KEEP = Answer(speaks=True)


def say(text: str) -> Answer:
    """An answer in words of its own."""
    return Answer(speaks=True, text=text, whole=True)


def do(call: Call) -> Answer:
    """An answer that calls a skill."""
    return Answer(speaks=True, call=call)


@dataclass(frozen=True, slots=True)
class Moment:
    """One unit of a dialogue. ``kind`` says in a word what has to be known for its answer.

    Moments are a tree: ``after`` is the index, in their dialogue, of the one before it, None for the first. An
    utterance that is still going on, or an answer as it was before it was cut, has none after it.
    """

    after: int | None
    heard: Heard | None
    wanted: Answer
    kind: str
    told: str = ""
    """What was said: by the answer itself or by the skill it called."""
    cut: bool = False
    """Whether ``told`` was cut there."""
    learnt: bool = True
    """Whether its answer is to be learnt; else it is there for those after it."""


def path(dialogue: Sequence[Moment], index: int) -> list[int]:
    """The indices of the moments up to ``index``, itself included."""
    found = [index]
    while (before := dialogue[found[-1]].after) is not None:
        found.append(before)
    return found[::-1]
