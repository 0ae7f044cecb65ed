"""A reply of the thinker: its text as it is told, and what is left of it when it is cut."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from duologue.engine.messages import Conditioning, Fence, ReplyText
from duologue.engine.models.duplex.family import Answer, Format
from duologue.engine.models.duplex.words import Text
from duologue.engine.runners.base import Rows


@dataclass(frozen=True, slots=True)
class Spoken:
    """A unit in which a reply was spoken: tokens [``first``, ``behind``) of its text are in entry ``entry``."""

    entry: int
    """The unit's place in the session's sequence."""
    first: int
    behind: int
    lead: tuple[int, ...]
    """What stands before them in the answer."""


class Reply:
    """One reply, begun in ``epoch``."""

    def __init__(self, number: int, epoch: int, text: Text, nothing: Rows) -> None:
        """``nothing`` is the state, (hidden_size,), of a token whose own is not known."""
        self.number = number
        self.epoch = epoch
        self.text = text
        self.over = False
        """Whether its end has been told, or it has failed."""
        self.start = 0
        """Where in the text what has not been told begins."""
        self._spoken: list[Spoken] = []
        self._rows: list[Rows] = []
        """Hidden states of the tokens that have not been told."""
        self._told = 0
        """Tokens that have been told."""
        self._seq = 0
        self._nothing = nothing

    @property
    def known(self) -> bool:
        """Whether anybody has been told of it."""
        return self.start > 0

    def add(self, entry: int, answer: Answer, rows: Mapping[int, Rows]) -> None:
        """Add the text of an answer whose tokens have the states ``rows``, by their places in it."""
        first = len(self.text.tokens)
        for token in answer.text:
            self.text.add(token)
        self._spoken.append(Spoken(entry, first, len(self.text.tokens), answer.lead))
        self._rows += [rows.get(place, self._nothing) for place in answer.places]

    def pass_over(self) -> None:
        """Take the tokens before ``start`` for told, as they were in the session's life before."""
        while self._told < self.text.whole and self.text.ends[self._told] <= self.start:
            self._told += 1
            del self._rows[:1]

    def tell(self, session: str, epoch: int, *, last: bool, pause: bool) -> ReplyText | None:
        """Tell what of its text is new, or that it is whole; with ``pause`` also that there is nothing new.

        A reply without a word is told to nobody.
        """
        if self.over:
            return None
        text, first, behind = self.text, self._told, self.text.whole
        end = text.ends[behind - 1] if behind else 0
        if end == self.start and not (self.known and (last or pause)):
            return None
        rows, self._rows = self._rows[:behind - first], self._rows[behind - first:]
        conditioning = Conditioning(
            np.array(text.tokens[first:behind], np.int32), np.array(rows, np.float32).reshape(-1, len(self._nothing)),
            np.array(text.ends[first:behind], np.int32)) if rows or pause else None
        message = ReplyText(Fence(session, epoch, self.number, self._seq), self.start, text.text[self.start:end], last,
                            conditioning=conditioning)
        self._told, self.start, self._seq, self.over = behind, end, self._seq + 1, last
        return message

    def cut(self, form: Format, heard: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """The answers that change, by entry, when only its first ``heard`` characters were heard.

        Tokens beyond what was heard go, the last unit with text that was heard ends the reply, and those after it
        listen.
        """
        self.text.end()
        tokens, ends = self.text.tokens, self.text.ends
        begins = [0, *ends]
        last = max((i for i, unit in enumerate(self._spoken)
                    if any(begins[at] < ends[at] <= heard for at in range(unit.first, unit.behind))), default=-1)
        if last >= 0:
            unit = self._spoken[last]
            kept = [tokens[at] for at in range(unit.first, unit.behind) if ends[at] <= heard]
            yield unit.entry, form.ended(unit.lead, kept)
        for unit in self._spoken[last + 1:]:
            yield unit.entry, form.silent
