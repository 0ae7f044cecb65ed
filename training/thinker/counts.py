"""A trigram model counted from sentences: interpolated Witten-Bell (Witten and Bell 1991, method C).

Open places are ``ANY`` in the sentences. What follows one is counted with a shorter history: its own words are not
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from training.thinker.backoff import BEGIN, END, Floats, Ints

ANY = "<any>"


@dataclass(frozen=True, slots=True, eq=False)
class _Order:
    """The n-grams of one order: how often each was seen, and how often its history and with how many followers."""

    keys: Ints
    counts: Floats
    histories: Ints
    seen: Floats
    followers: Floats

    def interpolated(self, keys: Ints, histories: Ints, lower: Floats) -> Floats:
        """P of ``keys``, whose probability by a shorter history is ``lower``."""
        count = _looked_up(self.keys, self.counts, keys)
        seen = _looked_up(self.histories, self.seen, histories)
        followers = _looked_up(self.histories, self.followers, histories)
        return np.where(seen > 0, (count + followers * lower) / np.maximum(seen + followers, 1.0), lower)


class Counted:
    """The model of ``sentences`` over ``words``; number ``len(words)`` stands for an open place.

    Raises KeyError for a word that is not among ``words``.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], words: Sequence[str], base: Floats) -> None:
        """``base`` is what each word's probability tends to where it was not seen, shape (words,)."""
        number = {word: i for i, word in enumerate(words)} | {ANY: len(words)}
        self.size = size = len(words) + 1
        rows = [np.array([number[word] for word in (BEGIN, *sentence, END)]) for sentence in sentences]
        line = np.concatenate(rows)
        place = np.concatenate([np.arange(len(row)) for row in rows])
        # Steps back to the nearest open place, which no history reaches over.
        last = np.maximum.accumulate(np.where(line == len(words), np.arange(len(line)), -1))
        room = np.minimum(place, np.arange(len(line)) - np.concatenate([[-1], last[:-1]]) - 1)
        ones, twos, threes = (np.flatnonzero((place > 0) & (room >= order)) for order in (0, 1, 2))
        seen = np.bincount(line[ones], minlength=size).astype(np.float64)
        kinds = np.count_nonzero(seen)
        self._ones = (seen + kinds * np.append(base, 0.0)) / (seen.sum() + kinds)
        self._twos = _order(line[twos - 1] * size + line[twos], size)
        self._threes = _order((line[threes - 2] * size + line[threes - 1]) * size + line[threes], size)

    def one(self, last: Ints) -> Floats:
        """P(w)."""
        return cast(Floats, self._ones[last])

    def two(self, first: Ints, last: Ints) -> Floats:
        """P(w | v)."""
        return self._twos.interpolated(first * self.size + last, first, self.one(last))

    def three(self, first: Ints, second: Ints, last: Ints) -> Floats:
        """P(w | u, v)."""
        history = first * self.size + second
        return self._threes.interpolated(history * self.size + last, history, self.two(second, last))

    @property
    def pairs(self) -> Ints:
        """The bigrams seen, as numbers (n, 2); open places are left out."""
        keys = self._twos.keys
        return self._closed(np.stack([keys // self.size, keys % self.size], axis=1))

    @property
    def triples(self) -> Ints:
        """The trigrams seen, as numbers (n, 3); open places are left out."""
        keys = self._threes.keys
        return self._closed(np.stack([keys // self.size // self.size, keys // self.size % self.size,
                                      keys % self.size], axis=1))

    def _closed(self, grams: Ints) -> Ints:
        return grams[(grams < self.size - 1).all(axis=1)]


def _order(keys: Ints, size: int) -> _Order:
    grams, counts = np.unique(keys, return_counts=True)
    histories, begins, followers = np.unique(grams // size, return_index=True, return_counts=True)
    seen = np.add.reduceat(counts, begins) if len(grams) else counts
    return _Order(grams, counts.astype(np.float64), histories, seen.astype(np.float64), followers.astype(np.float64))


def _looked_up(keys: Ints, values: Floats, wanted: Ints) -> NDArray[np.float64]:
    if not len(keys):
        return np.zeros(len(wanted))
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, values[at], 0.0)
