"""A session's sequence as it was put together: the one record of which every KV is a cache.

A log is a prefix and entries. An entry is pieces that went in and, if it was asked for, the tokens answered to them.
Entries have numbers that stay theirs, counted from 0 at the session's start, so that a number is a mark. Every change
says before which position nothing changed: so far a KV that was in step with the log still counts.

Of an answer the last sampled token is not part of the sequence, as in a streaming-input session whose prompt is all
inputs so far plus outputs without each segment's last token; a family that wants its terminators back says so
(``Grammar.terminators``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from duologue.engine.runners.base import Piece, Tokens


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a model family puts around the answers in its sequence."""

    terminators: bool = False
    """Whether an answer's last token is part of the sequence."""
    tail: tuple[int, ...] = ()
    """Follows every answer."""
    unsaid: frozenset[int] = frozenset()
    """Tokens of an answer that are not text."""
    memory: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    """What stands before and after the text left of forgotten entries."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Pieces that went in, and the tokens answered to them; None when there is no answer (yet)."""

    pieces: tuple[Piece, ...]
    tokens: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """The text tokens left of forgotten entry ``number``."""

    number: int
    tokens: tuple[int, ...]


class Log:
    """One session's sequence; ``length`` is in positions."""

    def __init__(self, prefix: Sequence[Piece], grammar: Grammar) -> None:
        self.grammar = grammar
        self.prefix = sum(map(len, prefix))
        """Positions of the prefix."""
        self.length = self.prefix
        self.first = 0
        """Number of the oldest entry that is still there."""
        self._prefix = tuple(prefix)
        self._memory: list[Memory] = []
        self._entries: deque[Entry] = deque()

    @property
    def next(self) -> int:
        """The number the next entry will have; as a mark, the end of the sequence now."""
        return self.first + len(self._entries)

    @property
    def remembered(self) -> int:
        """Text tokens left of forgotten entries."""
        return sum(len(memory.tokens) for memory in self._memory)

    @property
    def entries(self) -> Sequence[tuple[int, int]]:
        """Of every entry its size in positions and how many text tokens its answer has."""
        return [(self._size(entry), len(self._said(entry))) for entry in self._entries]

    def begin_with(self, prefix: Sequence[Piece]) -> int:
        """Put another prefix in front; returns before which position nothing changed."""
        if tuple(prefix) == self._prefix:
            return self.length
        self._prefix = tuple(prefix)
        self.length -= self.prefix
        self.prefix = sum(map(len, prefix))
        self.length += self.prefix
        return 0

    def append(self, pieces: Sequence[Piece]) -> int:
        """Add an entry without an answer; returns its number."""
        entry = Entry(tuple(pieces))
        self._entries.append(entry)
        self.length += self._size(entry)
        return self.next - 1

    def answer(self, tokens: Sequence[int]) -> None:
        """Give the last entry its answer."""
        self._put(len(self._entries) - 1, tuple(tokens))

    def revise(self, number: int, tokens: Sequence[int]) -> int:
        """Change the answer of entry ``number``; returns before which position nothing changed.

        One that has been forgotten stays so.
        """
        if number < self.first:
            return self.length
        at = number - self.first
        before = self._answer(self._entries[at])
        self._put(at, tuple(tokens))
        after = self._answer(self._entries[at])
        if before == after:
            return self.length
        same = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b),
                    min(len(before), len(after)))
        behind = sum(self._size(self._entries[i]) for i in range(at + 1, len(self._entries)))
        return self.length - behind - len(after) + same

    def rollback(self, mark: int) -> int:
        """Take away every entry from number ``mark`` on; returns before which position nothing changed.

        Of entries before the mark that have been forgotten only their text is there.
        """
        if not 0 <= mark <= self.next:
            raise ValueError(f"no mark {mark}: the session has had {self.next} entries")
        while self.next > max(mark, self.first):
            self.length -= self._size(self._entries.pop())
        if mark >= self.first:
            return self.length
        self.first = mark
        self._remember([memory for memory in self._memory if memory.number < mark])
        return self.prefix

    def forget(self, count: int, text: int) -> int:
        """Drop the ``count`` oldest entries but for the last ``text`` text tokens forgotten so far.

        Returns before which position nothing changed.
        """
        memory = list(self._memory)
        for _ in range(count):
            entry = self._entries.popleft()
            self.length -= self._size(entry)
            memory.append(Memory(self.first, self._said(entry)))
            self.first += 1
        kept: list[Memory] = []
        for each in reversed(memory):
            tokens = each.tokens[max(len(each.tokens) - text, 0):]
            if tokens:
                kept.append(Memory(each.number, tokens))
                text -= len(tokens)
        self._remember(kept[::-1])
        return self.prefix

    def pieces(self, start: int = 0) -> tuple[Piece, ...]:
        """The sequence from position ``start`` on, which is a place where it may be cut; tokens in a row are one."""
        runs: list[Piece] = []
        at = self.length
        for run in self._backwards():
            if at <= start:
                break
            at -= len(run)
            if at < start:
                if not isinstance(run, Tokens):
                    raise ValueError(f"position {start} is within embeddings")
                run = Tokens(run.ids[start - at:])
            runs.append(run)
        return joined(runs[::-1])

    def cuttable(self, position: int) -> int:
        """The last place up to ``position`` where the sequence may be cut: not within embeddings."""
        at = self.length
        for run in self._backwards():
            at -= len(run)
            if at <= position:
                inside = position < at + len(run)
                return at if inside and not isinstance(run, Tokens) else position
        return position

    def _backwards(self) -> Iterator[Piece]:
        """Give the sequence's pieces from the last to the first: what changes is at the end."""
        for entry in reversed(self._entries):
            answer = self._answer(entry)
            if answer:
                yield Tokens(answer)
            yield from reversed(entry.pieces)
        if self._memory:
            yield Tokens(self._recalled())
        yield from reversed(self._prefix)

    def _recalled(self) -> tuple[int, ...]:
        opening, closing = self.grammar.memory
        return (*opening, *(token for memory in self._memory for token in memory.tokens), *closing)

    def _remember(self, memory: list[Memory]) -> None:
        if self._memory:
            self.length -= len(self._recalled())
        self._memory = memory
        if memory:
            self.length += len(self._recalled())

    def _answer(self, entry: Entry) -> tuple[int, ...]:
        """Give what of the entry's answer is in the sequence."""
        if entry.tokens is None:
            return ()
        return (*(entry.tokens if self.grammar.terminators else entry.tokens[:-1]), *self.grammar.tail)

    def _said(self, entry: Entry) -> tuple[int, ...]:
        return tuple(token for token in entry.tokens or () if token not in self.grammar.unsaid)

    def _size(self, entry: Entry) -> int:
        return sum(map(len, entry.pieces)) + len(self._answer(entry))

    def _put(self, at: int, tokens: tuple[int, ...]) -> None:
        before, after = self._entries[at], replace(self._entries[at], tokens=tokens)
        self.length += self._size(after) - self._size(before)
        self._entries[at] = after


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Make neighbouring tokens one piece."""
    out: list[Piece] = []
    for kind, run in groupby(pieces, type):
        if kind is Tokens:
            out.append(Tokens(tuple(id for piece in run if isinstance(piece, Tokens) for id in piece.ids)))
        else:
            out += run
    return tuple(out)
