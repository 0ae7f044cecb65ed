"""What the rules of ``Sampling`` say before any logit is looked at: the same for whatever holds the logits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from math import prod

import numpy as np

from duologue.engine.runners.base import Copy, Sampling
from duologue.engine.runners.copying import allowed

TRIAL = 1
"""The stream of numbers by which ``tried`` is drawn; the other draw has 0."""


def check(sampling: Sampling, vocabulary: int) -> None:
    """Raise ``ValueError`` with what is wrong when ``sampling`` cannot be followed over ids below ``vocabulary``."""
    if sampling.max_tokens < 1:
        raise ValueError(f"max_tokens is {sampling.max_tokens}, must be at least 1")
    if not sampling.temperature >= 0 or not 0 < sampling.top_p <= 1 or sampling.top_k < 0:
        raise ValueError("temperature and top_k must be at least 0, top_p above 0 and at most 1")
    if not sampling.repetition_penalty > 0 or sampling.repetition_window < 0:
        raise ValueError("repetition_penalty must be above 0, repetition_window at least 0")
    if not all(factor > 0 for _, factor in sampling.damp):
        raise ValueError("the factors of damp must be above 0")
    if sampling.at_once is not None and sampling.at_once[1] < 1:
        raise ValueError(f"at_once is among the {sampling.at_once[1]} largest, must be at least 1")
    swap, copy = sampling.swap, sampling.copy
    tried = () if sampling.tried is None else (sampling.tried,)
    named = {"stop": sampling.stop, "recent": sampling.recent, "forbidden": sampling.forbidden,
             "first": sampling.first, "bias": [id for id, _ in sampling.bias], "damp": [id for id, _ in sampling.damp],
             "tried": tried, "at_once": [] if sampling.at_once is None else sampling.at_once[:1],
             "swap": [] if swap is None else [swap.chosen, swap.into, swap.but_after],
             "copy": [] if copy is None else [*copy.opens, *copy.closes, *_copied(copy)],
             "at_budget": [] if sampling.at_budget is None else [sampling.at_budget]}
    for name, ids in named.items():
        for id in ids:
            if not 0 <= id < vocabulary:
                raise ValueError(f"{name} names token {id}, but the vocabulary has {vocabulary}")
    out = {*sampling.forbidden, *tried}
    if len(out) == vocabulary or (sampling.first and out.issuperset(sampling.first)):
        raise ValueError("forbidden leaves no token to choose")
    if copy is not None:
        if not copy.closes or not all(map(len, copy.texts)) or not all(map(len, chain(*copy.texts))) or not copy.texts:
            raise ValueError("copy needs tokens that close it, and texts with words that have tokens")
        if not out.isdisjoint([*copy.closes, *_copied(copy)]):
            raise ValueError("forbidden and tried take out what copy allows")


def held(sampling: Sampling, said: Sequence[int]) -> tuple[int, ...]:
    """Give the tokens of which the next is one, behind ``said`` of the segment; empty where it may be any."""
    if not said:
        return sampling.first
    return () if sampling.copy is None else allowed(sampling.copy, said)


def penalties(sampling: Sampling, tokens: Sequence[int]) -> list[tuple[int, float]]:
    """Give each id that the repetition penalty covers behind ``tokens`` of the segment, with its factor."""
    penalty = sampling.repetition_penalty
    if penalty == 1.0:
        return []
    counted = [*sampling.recent, *tokens][-sampling.repetition_window:]
    swap = sampling.swap
    if swap is not None:
        counted = [swap.chosen if id == swap.into else id for id in counted]
    return [(id, penalty**times if sampling.repetition == "often" else penalty)
            for id, times in Counter(counted).items()]


def _copied(copy: Copy) -> Iterator[int]:
    return (id for text in copy.texts for word in text for id in word)


def multiplied(factors: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Give each id of ``factors`` once, with the product of its factors."""
    return [(id, prod(factor for other, factor in factors if other == id)) for id in dict(factors)]


def swapped(token: int, sampling: Sampling, tokens: Sequence[int]) -> int:
    """Give what takes the place of the chosen ``token``, behind ``tokens`` of its segment."""
    swap = sampling.swap
    if swap is None or token != swap.chosen or (tokens[-1] == swap.but_after if tokens else not swap.at_first):
        return token
    return swap.into


def uniform(seed: int, place: int, stream: int = 0) -> float:
    """Give the number in [0, 1) of token ``place`` of a segment with ``seed`` (Philox: by counter)."""
    counter = place + (stream << 64)
    return float(np.random.Generator(np.random.Philox(key=seed % 2**64, counter=counter)).random())
