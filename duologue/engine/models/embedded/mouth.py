"""Gives a reply's text out as a model would: piece by piece, a little ahead of the voice."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

AHEAD_S = 1.2
"""Seconds of speech that are written before they are needed."""
_LETTER_S = 0.06
_COMMA_S = 0.2
_STOP_S = 0.5
"""A little less than flite's voice takes (fitted to stories, counts and short answers), so that it never waits."""
_FIRST_WORDS = 5
"""Words in the first piece at most, where no mark ends it sooner."""
_WORDS = 7
_SPILL = 2
"""Words by which a piece may be longer if it then ends at a mark."""
_MIN_WORDS = 3
"""Words of a piece that ends at a comma; "one, two, three," is one piece."""
_SHORT_WORDS = 8
"""A reply of no more words is given whole."""
_TOKEN = re.compile(r"\S+\s*")


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters [start, start + len(text)) of a reply."""

    start: int
    text: str
    last: bool


def seconds(text: str) -> float:
    """Roughly how long ``text`` takes to say."""
    letters = sum(map(str.isalpha, text))
    commas, stops = sum(map(text.count, ",:;")), sum(map(text.count, ".?!"))
    return letters * _LETTER_S + commas * _COMMA_S + stops * _STOP_S


def _ends_sentence(token: str) -> bool:
    return token.rstrip()[-1] in ".?!:;"


def _ends_clause(token: str) -> bool:
    return _ends_sentence(token) or token.rstrip()[-1] == ","


def pieces(text: str, start: int = 0) -> list[Piece]:
    """Cuts ``text`` from ``start`` on at clauses where it can, always between words; never empty."""
    tokens = _TOKEN.findall(text[start:])
    if not tokens:
        return [Piece(start, text[start:], True)]
    groups: list[list[str]] = [[]]
    for i, token in enumerate(tokens):
        group = groups[-1]
        limit = _FIRST_WORDS if len(groups) == 1 else _WORDS
        near = any(_ends_clause(other) for other in tokens[i:i + _SPILL])
        full = len(group) >= limit + _SPILL or (len(group) >= limit and not near)
        clause = bool(group) and _ends_clause(group[-1]) and (len(group) >= _MIN_WORDS or _ends_sentence(group[-1]))
        if len(tokens) > _SHORT_WORDS and (clause or full):
            groups.append([])
        groups[-1].append(token)
    # White space before the first word belongs to it.
    groups[0][0] = text[start:text.index(groups[0][0], start)] + groups[0][0]
    result: list[Piece] = []
    for group in groups:
        joined = "".join(group)
        result.append(Piece(start, joined, last=len(result) == len(groups) - 1))
        start += len(joined)
    return result


class Mouth:
    """One reply at a time; ``tick`` once a unit."""

    def __init__(self) -> None:
        self._waiting: deque[Piece] = deque()
        self._rate = 1.0
        self._ahead_s = 0.0
        self.written = 0

    @property
    def open(self) -> bool:
        """Whether the reply's text is not all written."""
        return bool(self._waiting)

    def begin(self, text: str, rate: float, written: int = 0) -> None:
        """Start on ``text``, of which ``written`` characters are out already."""
        self._waiting = deque(pieces(text, written))
        self._rate = rate
        self._ahead_s = 0.0
        self.written = written

    def tick(self, elapsed_s: float) -> list[Piece]:
        """What to write now, ``elapsed_s`` after the last call."""
        self._ahead_s = max(0.0, self._ahead_s - elapsed_s)
        due: list[Piece] = []
        while self._waiting and self._ahead_s < AHEAD_S:
            piece = self._waiting.popleft()
            self._ahead_s += seconds(piece.text) / self._rate
            self.written = piece.start + len(piece.text)
            due.append(piece)
        return due

    def stop(self) -> None:
        """Write no more; the reply was cut."""
        self._waiting.clear()

    def close(self) -> Piece | None:
        """End the reply where it is; None when it has ended."""
        if not self._waiting:
            return None
        self._waiting.clear()
        return Piece(self.written, "", last=True)
