"""Two trigram models as one: a general one, and one counted from what callers say to this dialogue."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from training.thinker.backoff import BEGIN, END, Backoff, Floats, Grams, Ints
from training.thinker.counts import Counted


def restricted(model: Backoff, wanted: Iterable[str]) -> Backoff:
    """``model`` over the ``wanted`` words alone; those that it lacks are as likely as its least likely word."""
    words = tuple(sorted({*wanted, BEGIN, END}))
    place = {word: i for i, word in enumerate(words)}
    new = np.array([place.get(word, -1) for word in model.words])
    rarest = model.ones.logs[model.ones.logs > -100.0].min()
    ones = Grams(np.arange(len(words)), np.full(len(words), rarest), np.zeros(len(words)))
    known = new >= 0
    ones.logs[new[known]], ones.weights[new[known]] = model.ones.logs[known], model.ones.weights[known]
    size = model.size
    twos = _renamed(model.twos, [new[model.twos.keys // size], new[model.twos.keys % size]], len(words))
    threes = _renamed(model.threes, [new[model.threes.keys // size // size], new[model.threes.keys // size % size],
                                     new[model.threes.keys % size]], len(words))
    return _scaled(Backoff(words, ones, twos, threes))


def _renamed(grams: Grams, columns: list[Ints], size: int) -> Grams:
    kept = np.all([column >= 0 for column in columns], axis=0)
    keys = np.zeros(len(grams.keys), np.int64)
    for column in columns:
        keys = keys * size + column
    order = np.argsort(keys[kept], kind="stable")
    return Grams(keys[kept][order], grams.logs[kept][order], grams.weights[kept][order])


def _scaled(model: Backoff) -> Backoff:
    """Each history's probabilities made larger by what went with the words left out."""
    size = model.size
    one = np.exp(model.ones.logs)
    ones = Grams(model.ones.keys, model.ones.logs - np.log(one.sum()), model.ones.weights)
    first = model.twos.keys // size
    explicit = np.bincount(first, np.exp(model.twos.logs), size)
    covered = np.bincount(first, one[model.twos.keys % size], size)
    total = explicit + np.exp(model.ones.weights) * (one.sum() - covered)
    twos = Grams(model.twos.keys, model.twos.logs - np.log(total)[first], model.twos.weights)
    history, _ = model.twos.find(model.threes.keys // size)
    explicit = np.bincount(history, np.exp(model.threes.logs), len(twos.keys))
    tail = model.threes.keys % (size * size)
    covered = np.bincount(history, np.exp(model.log_two(tail)), len(twos.keys))
    below = total[model.twos.keys % size]
    whole = explicit + np.exp(model.twos.weights) * (below - covered)
    threes = Grams(model.threes.keys, model.threes.logs - np.log(whole)[history], model.threes.weights)
    return Backoff(model.words, ones, twos, threes).normalised()


def mixed(general: Backoff, fitted: Counted, share: float, sharpness: float) -> Backoff:
    """``share`` of ``fitted`` and the rest of ``general``; in a history that one of them expects more, more of it.

    How much more says ``sharpness``: with 0 the shares are the same everywhere, with 1 they are the probability that
    the history came from each (Bayes' rule, as if every sentence came from one of the two). An open place of
    ``fitted`` is filled with ``general``.
    """
    size = general.size
    pairs = np.unique(np.concatenate([general.twos.keys, fitted.pairs @ np.array([size, 1])]))
    triples = np.unique(np.concatenate([general.threes.keys, fitted.triples @ np.array([size * size, size, 1])]))
    # A trigram's history and its tail are there as bigrams.
    pairs = np.unique(np.concatenate([pairs, triples // size, triples % (size * size)]))
    odds = np.log(share) - np.log(1.0 - share)

    def logs(own: Floats, opened: Floats, other: Floats, apart: Floats) -> Floats:
        """Log probabilities of a mixture, of a history whose log probability is ``apart`` higher in ``fitted``."""
        ours = 1.0 / (1.0 + np.exp(-np.clip(odds + sharpness * apart, -30.0, 30.0)))
        said = np.exp(other)
        both: Floats = np.log(ours * (own + opened * said) + (1.0 - ours) * said)
        return both

    every = np.arange(size)
    anything = np.array([size])
    ones = logs(fitted.one(every), fitted.one(anything), general.ones.logs, np.zeros(size))
    first, last = pairs // size, pairs % size
    own_first, general_first = fitted.one(every), np.exp(general.ones.logs)
    for array in (own_first, general_first):
        array[general.words.index(BEGIN)] = array[general.words.index(END)]
    apart = np.log(own_first) - np.log(general_first)
    opened = fitted.two(every, np.full(size, size))
    twos = logs(fitted.two(first, last), opened[first], general.log_two(pairs), apart[first])
    before, middle, end = triples // size // size, triples // size % size, triples % size
    histories, which = np.unique(triples // size, return_inverse=True)
    first, last = histories // size, histories % size
    further = apart[first] + np.log(fitted.two(first, last)) - general.log_two(histories)
    opened = fitted.three(first, last, np.full(len(first), size))
    threes = logs(fitted.three(before, middle, end), opened[which], general.log_three(triples), further[which])
    return Backoff(general.words, Grams(every, ones, np.zeros(size)), Grams(pairs, twos, np.zeros(len(pairs))),
                   Grams(triples, threes, np.zeros(len(triples)))).normalised()
