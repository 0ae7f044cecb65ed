"""Trigram models that back off (Katz 1987), as sorted arrays: looked up, normalised and pruned many n-grams at once.

Words are numbers; a bigram is keyed ``u * V + v``, a trigram ``(u * V + v) * V + w``. Logarithms are natural ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEGIN, END = "<s>", "</s>"
_NEVER = -99.0 * np.log(10.0)
"""What ARPA files write for a word that is only ever a history."""


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """The n-grams of one order: sorted keys, their log probabilities, and their log backoff weights as histories."""

    keys: Ints
    logs: Floats
    weights: Floats

    def find(self, keys: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Where ``keys`` are, and which of them are there at all."""
        if not len(self.keys):
            return np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return at, self.keys[at] == keys

    def kept(self, which: NDArray[np.bool_]) -> Grams:
        """Only ``which`` of them."""
        return Grams(self.keys[which], self.logs[which], self.weights[which])


@dataclass(frozen=True, slots=True, eq=False)
class Backoff:
    """A trigram model over ``words``; ``ones`` has a gram for each of them."""

    words: tuple[str, ...]
    ones: Grams
    twos: Grams
    threes: Grams

    @property
    def size(self) -> int:
        """How many words there are."""
        return len(self.words)

    def log_two(self, keys: Ints) -> Floats:
        """log P(v | u) of bigrams."""
        at, there = self.twos.find(keys)
        last = self.ones.logs[keys % self.size] + self.ones.weights[keys // self.size]
        return np.where(there, self.twos.logs[at] if len(self.twos.keys) else 0.0, last)

    def log_three(self, keys: Ints) -> Floats:
        """log P(w | u, v) of trigrams."""
        size = self.size
        at, there = self.threes.find(keys)
        history, known = self.twos.find(keys // size)
        weight = np.where(known, self.twos.weights[history] if len(self.twos.keys) else 0.0, 0.0)
        last = self.log_two(keys // size % size * size + keys % size) + weight
        return np.where(there, self.threes.logs[at] if len(self.threes.keys) else 0.0, last)

    def normalised(self) -> Backoff:
        """The same with backoff weights that make each history's probabilities add up to one.

        A history whose own n-grams have all of the mass, or more, is scaled to leave a thousandth.
        """
        size = self.size
        ones = replace(self.ones, logs=self.ones.logs - np.log(np.exp(self.ones.logs).sum()))
        alone = Backoff(self.words, replace(ones, weights=np.zeros(size)), _none(), _none())
        twos, weights = _balanced(self.twos, self.twos.keys // size, size, alone.log_two(self.twos.keys))
        half = Backoff(self.words, replace(ones, weights=weights), replace(twos, weights=np.zeros(len(twos.keys))),
                       _none())
        history, _ = half.twos.find(self.threes.keys // size)
        tail = self.threes.keys % (size * size)
        threes, weights = _balanced(self.threes, history, len(twos.keys), half.log_two(tail))
        return Backoff(self.words, half.ones, replace(twos, weights=weights), threes)

    def pruned(self, least: float) -> Backoff:
        """Without the n-grams whose absence changes the model by less than ``least`` (Stolcke 1998, equation 3).

        The change is the relative entropy between the two models, in nats a word.
        """
        size = self.size
        log_history = self._log_histories()
        history, _ = self.twos.find(self.threes.keys // size)
        lower = self.log_two(self.threes.keys % (size * size))
        loss = _losses(self.threes.logs, lower, history, len(self.twos.keys), log_history, self.twos.weights)
        threes = self.threes.kept(loss >= least)
        needed = np.isin(self.twos.keys, np.concatenate([threes.keys // size, threes.keys % (size * size)]))
        begins = np.exp(self.ones.logs)
        begins[self.words.index(BEGIN)] = begins[self.words.index(END)]
        loss = _losses(self.twos.logs, self.ones.logs[self.twos.keys % size], self.twos.keys // size, size,
                       np.log(begins), self.ones.weights)
        return Backoff(self.words, self.ones, self.twos.kept(needed | (loss >= least)), threes).normalised()

    def _log_histories(self) -> Floats:
        """log of how often each bigram is a history; a sentence begins as often as one ends."""
        size = self.size
        first = self.ones.logs.copy()
        first[self.words.index(BEGIN)] = first[self.words.index(END)]
        return first[self.twos.keys // size] + self.twos.logs

    def write(self, path: Path) -> None:
        """Write an ARPA file, words and n-grams in the order of their numbers."""
        size, ten = self.size, np.log(10.0)
        names = np.array(self.words, dtype=object)
        rows = [[names], [names[self.twos.keys // size], names[self.twos.keys % size]],
                [names[self.threes.keys // size // size], names[self.threes.keys // size % size],
                 names[self.threes.keys % size]]]
        with path.open("w", encoding="utf-8") as file:
            file.write("\\data\\\n")
            for order, grams in enumerate((self.ones, self.twos, self.threes), 1):
                file.write(f"ngram {order}={len(grams.keys)}\n")
            for order, (columns, grams) in enumerate(zip(rows, (self.ones, self.twos, self.threes), strict=True), 1):
                file.write(f"\n\\{order}-grams:\n")
                for *gram, log, weight in zip(*columns, grams.logs / ten, grams.weights / ten, strict=True):
                    end = "" if order == 3 else f"\t{weight:.4f}"
                    file.write(f"{max(log, -99.0):.4f}\t{' '.join(gram)}{end}\n")
            file.write("\n\\end\\\n")


def _none() -> Grams:
    return Grams(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _balanced(grams: Grams, history: Ints, histories: int, lower: Floats) -> tuple[Grams, Floats]:
    """``grams`` with at most 0.999 a history, all of it where all words are there; and each log backoff weight."""
    own = np.maximum(np.bincount(history, np.exp(grams.logs), histories), 1e-30)
    below = 1.0 - np.bincount(history, np.exp(lower), histories)
    full = below < 1e-9
    scale = np.where(full, 1.0 / own, np.minimum(0.999 / own, 1.0))
    weights = np.where(full, 1.0, (1.0 - own * scale) / np.where(full, 1.0, below))
    return replace(grams, logs=grams.logs + np.log(scale)[history]), np.log(np.maximum(weights, 1e-30))


def _losses(logs: Floats, lower: Floats, history: Ints, histories: int, log_history: Floats, weights: Floats) -> Floats:
    """What each n-gram alone is worth, in nats a word."""
    own = np.bincount(history, np.exp(logs), histories)
    below = np.bincount(history, np.exp(lower), histories)
    left, under = (1.0 - own)[history] + np.exp(logs), (1.0 - below)[history] + np.exp(lower)
    new = np.log(np.maximum(left, 1e-12) / np.maximum(under, 1e-12))
    gone = np.exp(logs) * (lower + new - logs) + (1.0 - own)[history] * (new - weights[history])
    loss: Floats = -np.exp(log_history[history]) * gone
    return loss
