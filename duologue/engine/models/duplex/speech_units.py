"""How a reply's text is parted into units of speech, and which samples of a unit speak which of its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from duologue.engine.messages import Conditioning, ReplyText, TextSpan

_WORD = re.compile(r"\S{1,16}")
"""Scripts without spaces are cut at this length, so that a cut reply is not taken for heard by the sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class SpeechUnit:
    """A piece of a reply that the talker says in one go: ``text`` from character ``start`` on.

    Without ``conditioning`` it goes on with what was said before. ``last``: it ends the reply.
    """

    conditioning: Conditioning | None
    start: int
    text: str
    last: bool


def speech_units(message: ReplyText, most_tokens: int) -> Iterator[SpeechUnit]:
    """The units of a piece of text, of ``most_tokens`` tokens at most; one without text if it only ends the reply.

    A condition without a token is a unit too: the thinker has nothing to add yet, and the talker goes on for a unit.
    """
    given = message.conditioning
    if given is None:
        if message.last:
            yield SpeechUnit(None, message.start, "", last=True)
        return
    count = len(given.tokens)
    if not count:
        yield SpeechUnit(given, message.start, message.text, message.last)
    start = message.start
    for first in range(0, count, most_tokens):
        behind = min(first + most_tokens, count)
        end = message.start + len(message.text) if behind == count else int(given.ends[behind - 1])
        part = Conditioning(given.tokens[first:behind], given.rows[first:behind], given.ends[first:behind])
        yield SpeechUnit(part, start, message.text[start - message.start:end - message.start],
                         message.last and behind == count)
        start = end


class UnitSpans:
    """The spans of one unit's words, each told once it has been spoken.

    The words share the unit's ``samples`` in proportion to their place in the text; sample ``first`` of the reply is
    the unit's first.
    """

    def __init__(self, unit: SpeechUnit, first: int, samples: int) -> None:
        self._spans = [
            TextSpan(unit.start + word.start(), unit.start + word.end(),
                     first + samples * word.start() // len(unit.text), first + samples * word.end() // len(unit.text))
            for word in _WORD.finditer(unit.text)]

    def spoken(self, end: int) -> tuple[TextSpan, ...]:
        """Spans that end by sample ``end`` and have not been told."""
        count = sum(span.end_sample <= end for span in self._spans)
        told, self._spans = self._spans[:count], self._spans[count:]
        return tuple(told)

    def rest(self, end: int) -> tuple[TextSpan, ...]:
        """The spans left as the unit ends, earlier than was thought, at sample ``end``."""
        told, self._spans = self._spans, []
        return tuple(TextSpan(span.start, span.end, min(span.first_sample, end), min(span.end_sample, end))
                     for span in told)
