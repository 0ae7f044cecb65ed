"""What a dialogue understands with, and makes its answers by: rules, or a trained thinker."""

from __future__ import annotations

from typing import Protocol

from duologue.engine.models.embedded.dialogue.memory import Context, Memory
from duologue.engine.models.embedded.dialogue.policy import Answer, Sentence, joined, respond


class Wit(Protocol):
    """One dialogue's. What was said it is told, so that it may keep its own record; ``respond`` adds nothing to it."""

    def respond(self, memory: Memory, sentence: Sentence, context: Context) -> tuple[Answer | None, Memory]:
        """The answer to ``sentence``, or None where there is nothing to say, and the memory after it."""

    def joined(self, earlier: Sentence | None, later: Sentence) -> Sentence:
        """What to answer when ``later`` was said before ``earlier`` was answered."""

    def said(self, turn: int, sentence: Sentence | None, answer: Answer) -> None:
        """Reply ``turn`` is ``answer``, to ``sentence``; to None where it came unasked."""

    def passed(self, sentence: Sentence) -> None:
        """Nothing is said to ``sentence``."""

    def cut(self, turn: int, heard: str) -> None:
        """Only ``heard`` of reply ``turn`` was heard."""

    def undo(self, turn: int) -> None:
        """Reply ``turn``, and those after it, were not said."""


class Rules:
    """The dialogue policy: the grammar's intents. It keeps no record of its own."""

    def respond(self, memory: Memory, sentence: Sentence, context: Context) -> tuple[Answer | None, Memory]:
        """See ``Wit``."""
        return respond(memory, sentence, context)

    def joined(self, earlier: Sentence | None, later: Sentence) -> Sentence:
        """See ``Wit``."""
        return joined(earlier, later)

    def said(self, turn: int, sentence: Sentence | None, answer: Answer) -> None:
        """See ``Wit``."""

    def passed(self, sentence: Sentence) -> None:
        """See ``Wit``."""

    def cut(self, turn: int, heard: str) -> None:
        """See ``Wit``."""

    def undo(self, turn: int) -> None:
        """See ``Wit``."""
