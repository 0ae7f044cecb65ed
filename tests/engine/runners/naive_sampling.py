"""The rules of sampling, slowly and one row at a time: what runners choose by is held against it."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from duologue.engine.runners.base import Copy, Sampling, Swap
from duologue.engine.runners.rules import check

VOCABULARY = 12

ids = st.integers(0, VOCABULARY - 1)
# Few values, so that there are ties, and a distance between those that differ.
logits = st.lists(st.integers(-6, 6).map(lambda n: n / 2), min_size=VOCABULARY, max_size=VOCABULARY)


@st.composite
def copies(draw: st.DrawFn, vocabulary: int = VOCABULARY) -> Copy:
    """Texts of few different words, so that pieces begin alike and words begin others."""
    ids = st.integers(0, vocabulary - 1)
    words = draw(st.lists(st.lists(ids, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3))
    texts = st.lists(st.sampled_from(words), min_size=1, max_size=4).map(tuple)
    some = st.lists(ids, min_size=1, max_size=2).map(tuple)
    return Copy(draw(some), draw(some), tuple(draw(st.lists(texts, min_size=1, max_size=2))))


@st.composite
def samplings(draw: st.DrawFn, vocabulary: int = VOCABULARY, tokens: int = 4,
              temperatures: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0)) -> Sampling:
    """Rules that can be followed over so many ids, for up to so many tokens."""
    ids = st.integers(0, vocabulary - 1)
    some_ids = st.lists(ids, max_size=5).map(tuple)
    sampling = Sampling(
        max_tokens=draw(st.integers(1, tokens)), temperature=draw(st.sampled_from(temperatures)),
        top_k=draw(st.integers(0, vocabulary + 1)), top_p=draw(st.sampled_from([0.0513, 0.3017, 0.7713, 1.0])),
        repetition_penalty=draw(st.sampled_from([0.8, 1.0, 1.3])),
        repetition=draw(st.sampled_from(["once", "often", "divide"])), repetition_window=draw(st.integers(0, 4)),
        recent=draw(some_ids), forbidden=draw(some_ids), first=draw(some_ids),
        bias=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([-3.0, 2.5])), max_size=3))),
        damp=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([0.5, 1.1])), max_size=3))),
        tried=draw(st.none() | ids), at_once=draw(st.none() | st.tuples(ids, st.integers(1, 3))),
        swap=draw(st.none() | st.builds(Swap, ids, ids, ids, st.booleans())), at_budget=draw(st.none() | ids),
        copy=draw(st.none() | copies(vocabulary)), seed=draw(st.integers(0, 5)))
    try:
        check(sampling, vocabulary)
    except ValueError:
        assume(False)
    return sampling


def only(row: list[float], token: int) -> list[float]:
    return [value if i == token else -math.inf for i, value in enumerate(row)]


def naive_trial(row: list[float], sampling: Sampling, place: int) -> bool:
    """Whether ``tried`` is drawn."""
    assert sampling.tried is not None
    if sampling.temperature == 0:
        return row.index(max(row)) == sampling.tried
    share = math.exp(row[sampling.tried]) / sum(map(math.exp, row))
    number = np.random.Generator(np.random.Philox(key=sampling.seed, counter=[place, 1, 0, 0])).random()
    assume(abs(number - share) > 1e-5)
    return bool(number < share)


def naive_penalty(row: list[float], sampling: Sampling, tokens: tuple[int, ...]) -> list[float]:
    told = [*sampling.recent, *tokens]
    told = told[max(len(told) - sampling.repetition_window, 0):] if sampling.repetition_window else told
    swap = sampling.swap
    times = Counter(swap.chosen if swap is not None and id == swap.into else id for id in told)
    made = []
    for i, value in enumerate(row):
        factor = 1.0 if not times[i] else sampling.repetition_penalty ** times[i] if sampling.repetition == "often" \
            else sampling.repetition_penalty
        made.append(value / factor if value > 0 or sampling.repetition == "divide" else value * factor)
    return made


def naive_copy(copy: Copy | None, tokens: tuple[int, ...]) -> set[int]:
    """What may come next: what some piece of a text has there, and where one ends, what closes it."""
    places = [i for i, token in enumerate(tokens) if copy is not None and token in copy.opens]
    if copy is None or not places:
        return set()
    told = tokens[places[-1] + 1:]
    if set(told) & set(copy.closes):
        return set()
    pieces = [sum(text[first:last], ()) for text in copy.texts
              for first in range(len(text)) for last in range(first + 1, len(text) + 1)]
    return {piece[len(told)] for piece in pieces if len(piece) > len(told) and piece[:len(told)] == told} | {
        token for token in copy.closes if told in pieces}


def naive_constrain(row: list[float], sampling: Sampling, tokens: tuple[int, ...]) -> list[float]:
    if sampling.at_budget is not None and len(tokens) == sampling.max_tokens - 1:
        return only(row, sampling.at_budget)
    held = set(sampling.first) if not tokens else naive_copy(sampling.copy, tokens)
    if sampling.tried is not None and (not held or sampling.tried in held) \
            and naive_trial(row, sampling, len(tokens)):
        return only(row, sampling.tried)
    made = []
    for i, penalised in enumerate(naive_penalty(row, sampling, tokens)):
        value = penalised + sum(amount for id, amount in sampling.bias if id == i)
        for id, factor in sampling.damp:
            if id == i:
                value = value / factor if value > 0 else value * factor
        if i in sampling.forbidden or i == sampling.tried or (held and i not in held):
            value = -math.inf
        made.append(value)
    if sampling.at_once is not None:
        token, most = sampling.at_once
        if made[token] > -math.inf and sum(value > made[token] for value in made) < most:
            return only(made, token)
    return made


def naive_shares(row: list[float], sampling: Sampling) -> list[tuple[int, float]]:
    """What may be drawn, the most probable first, with probabilities that add up to less than 1 where some is cut."""
    order = sorted(range(VOCABULARY), key=lambda i: (-row[i], i))
    if sampling.temperature == 0:
        return [(order[0], 1.0)]
    kept = order[:sampling.top_k] if sampling.top_k else order
    weights = [math.exp((row[i] - row[order[0]]) / sampling.temperature) for i in kept]
    shares, before = [], 0.0
    for i, weight in zip(kept, weights, strict=True):
        if before >= sampling.top_p:
            break
        shares.append((i, weight / sum(weights)))
        before += weight / sum(weights)
    return shares


def naive_choice(row: list[float], sampling: Sampling, place: int) -> int | None:
    """The token, or None where rounding may decide."""
    shares = naive_shares(row, sampling)
    number = np.random.Generator(np.random.Philox(key=sampling.seed, counter=place)).random()
    goal = number * sum(share for _, share in shares)
    before = 0.0
    for i, share in shares:
        before += share
        if abs(before - goal) < 1e-9:
            return None
        if before > goal:
            return i
    raise AssertionError("the shares add up to all")


def naive_token(row: list[float], sampling: Sampling, tokens: tuple[int, ...]) -> int | None:
    """The token, swapped where it is to be, of what ``naive_constrain`` left; None where rounding may decide."""
    chosen = naive_choice(row, sampling, len(tokens))
    swap = sampling.swap
    if swap is not None and chosen == swap.chosen and (swap.at_first if not tokens else tokens[-1] != swap.but_after):
        return swap.into
    return chosen
