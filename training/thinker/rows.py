"""Dialogues as rows of tokens: several to a row, each a tree whose branches see their own past and nothing else.

So an utterance that is still going on costs no more than its own tokens, and stands in front of nothing: when the
thinker runs it is written anew at every unit, and only its last form stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.thinking.format import Format
from training.thinker.moments import KEEP, LISTEN, Moment

MOST_PARTS = 62
"""Parts of a row: a part's number is a bit in the integer in which every token has the parts it sees. One more is what
fills a row up."""
NOTHING, ANSWER, WORD = 0, 1, 2
"""Whether a token is to be learnt: not at all, as an answer, or as a caller's word."""


@dataclass(frozen=True, slots=True)
class Part:
    """One moment's tokens, the first at position ``first``; ``after`` is the index of the part before it.

    ``said`` has a sentence at the token behind which it is answered, and is empty at others.
    """

    tokens: tuple[int, ...]
    learnt: tuple[int, ...]
    said: tuple[str, ...]
    first: int
    after: int | None


@dataclass(slots=True)
class Row:
    """Tokens with their positions, the number of their part, the parts they see as bits, what is learnt of them, and
    the sentences that end with them."""

    tokens: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    sees: list[int] = field(default_factory=list)
    learnt: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, dialogue: Sequence[Part]) -> None:
        """Add a dialogue's parts."""
        seen: list[int] = []
        for part in dialogue:
            number = self.count
            self.count += 1
            seen.append((0 if part.after is None else seen[part.after]) | 1 << number)
            length = len(part.tokens)
            self.tokens += part.tokens
            self.learnt += part.learnt
            self.said += part.said
            self.positions += range(part.first, part.first + length)
            self.parts += [number] * length
            self.sees += [seen[-1]] * length


def parts(dialogue: Sequence[Moment], format_: Format, longest: int) -> list[Part]:
    """The parts of ``dialogue``, as many as ``longest`` tokens and a row's parts are enough for; the first is what a
    session begins with."""
    begin = tuple(id for piece in format_.prefix for id in piece.ids)
    found = [Part(begin, (NOTHING,) * len(begin), ("",) * len(begin), 0, None)]
    ends = {None: 0} | {moment.after: 0 for moment in dialogue}
    left = longest - len(begin)
    for index, moment in enumerate(dialogue):
        after = 0 if moment.after is None else moment.after + 1
        tokens, learnt, said = _part(moment, format_, last=index not in ends)
        if len(tokens) > left or len(found) == MOST_PARTS:
            break
        left -= len(tokens)
        found.append(Part(tokens, learnt, said, found[after].first + len(found[after].tokens), after))
    return found


def packed(dialogues: Iterable[list[Part]], length: int, open_rows: int = 64) -> Iterator[Row]:
    """Rows of at most ``length`` tokens; each dialogue goes where the least room is left over."""
    rows: list[Row] = []
    for dialogue in dialogues:
        size = sum(len(part.tokens) for part in dialogue)
        fitting = [row for row in rows
                   if len(row.tokens) + size <= length and row.count + len(dialogue) <= MOST_PARTS]
        if fitting:
            row = max(fitting, key=lambda row: len(row.tokens))
        else:
            row = Row()
            rows.append(row)
        row.add(dialogue)
        if len(rows) > open_rows:
            fullest = max(rows, key=lambda row: len(row.tokens))
            rows.remove(fullest)
            yield fullest
    yield from rows


def arrays(rows: Sequence[Row], length: int, numbers: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    """Rows as integer arrays (rows, length): tokens, positions, parts, what they see, what is learnt, and of the
    sentences that end there their ``numbers``."""
    found: dict[str, NDArray[Any]] = {}
    for name in ("tokens", "positions", "parts", "sees", "learnt", "meant"):
        kind = {"sees": np.int64, "tokens": np.int16, "positions": np.int16, "meant": np.int32}.get(name, np.int8)
        whole = np.full((len(rows), length), {"parts": MOST_PARTS, "sees": 1 << MOST_PARTS}.get(name, 0), kind)
        for place, row in enumerate(rows):
            values = [numbers.get(text, 0) for text in row.said] if name == "meant" else getattr(row, name)
            whole[place, :len(values)] = values
        found[name] = whole
    return found


def _part(moment: Moment, format_: Format, *,
          last: bool) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """The tokens of a moment, what is learnt of each, and the sentence that ends with one, if it is answered.

    Of the ``last`` of its kind there is nothing after the answer.
    """
    unit = format_.unit(moment.heard).ids
    wanted = moment.wanted
    if wanted == LISTEN:
        answer, own = format_.listening(), 1
    elif wanted == KEEP:
        answer, own = format_.keeping(), 2
    elif wanted.call is None:
        answer = format_.told(None, moment.told, cut=moment.cut)
        own = len(answer)
    else:
        called = format_.calling(wanted.call)
        answer = called if last else format_.told(wanted.call, moment.told, cut=moment.cut)
        own = len(called)
    words = len(moment.heard.words) if moment.heard is not None else 0
    tail = () if last else format_.grammar.tail
    learnt = [NOTHING] * (len(unit) + len(answer) + len(tail))
    if moment.learnt:
        learnt[len(unit):len(unit) + own] = [ANSWER] * own
        if words:
            over = moment.heard is not None and moment.heard.over
            first = 1 + over
            until = len(unit) - 1 - (moment.heard is not None and moment.heard.long)
            learnt[first:until] = [WORD] * (until - first)
    said = [""] * len(learnt)
    if moment.learnt and moment.heard is not None and wanted not in (LISTEN, KEEP):
        said[len(unit) - 1] = " ".join(moment.heard.words)
    return (*unit, *answer, *tail), tuple(learnt), tuple(said)
