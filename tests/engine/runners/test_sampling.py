"""The rules of sampling, against a naive version in numpy, and one by one."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from duologue.engine.runners.base import Sampling
from duologue.engine.runners.sampling import check, choose, constrain

VOCABULARY = 12

ids = st.integers(0, VOCABULARY - 1)
some_ids = st.lists(ids, max_size=5).map(tuple)
# Few values, so that there are ties, and a distance between those that differ.
logits = st.lists(st.integers(-6, 6).map(lambda n: n / 2), min_size=VOCABULARY, max_size=VOCABULARY)


@st.composite
def samplings(draw: st.DrawFn) -> Sampling:
    sampling = Sampling(
        max_tokens=draw(st.integers(1, 4)), temperature=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        top_k=draw(st.integers(0, VOCABULARY + 1)), top_p=draw(st.sampled_from([0.0513, 0.3017, 0.7713, 1.0])),
        repetition_penalty=draw(st.sampled_from([0.8, 1.0, 1.3])), recent=draw(some_ids), forbidden=draw(some_ids),
        first=draw(some_ids), bias=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([-3.0, 2.5])), max_size=3))),
        at_budget=draw(st.none() | ids), seed=draw(st.integers(0, 5)))
    try:
        check(sampling, VOCABULARY)
    except ValueError:
        assume(False)
    return sampling


def naive_constrain(row: list[float], sampling: Sampling, tokens: tuple[int, ...]) -> list[float]:
    if sampling.at_budget is not None and len(tokens) == sampling.max_tokens - 1:
        return [row[i] if i == sampling.at_budget else -math.inf for i in range(VOCABULARY)]
    made = []
    for i in range(VOCABULARY):
        value = row[i]
        if i in tokens or i in sampling.recent:
            value = value / sampling.repetition_penalty if value > 0 else value * sampling.repetition_penalty
        value += sum(amount for id, amount in sampling.bias if id == i)
        if i in sampling.forbidden or (not tokens and sampling.first and i not in sampling.first):
            value = -math.inf
        made.append(value)
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


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(logits, samplings(), st.lists(ids, max_size=3).map(tuple)), min_size=1, max_size=4))
def test_the_rules_are_those_of_the_naive_version(cases: list[tuple[list[float], Sampling, tuple[int, ...]]]) -> None:
    cases = [(row, sampling, tokens[:sampling.max_tokens - 1]) for row, sampling, tokens in cases]
    rows = [constrain(torch.tensor(row), sampling, tokens) for row, sampling, tokens in cases]
    for made, (row, sampling, tokens) in zip(rows, cases, strict=True):
        np.testing.assert_allclose(made.numpy(), naive_constrain(row, sampling, tokens), rtol=1e-6)
    chosen = choose(torch.stack(rows), [sampling for _, sampling, _ in cases], [len(tokens) for *_, tokens in cases])
    for token, made, (_, sampling, tokens) in zip(chosen, rows, cases, strict=True):
        expected = naive_choice(made.tolist(), sampling, len(tokens))
        assert expected in (token, None)


@settings(max_examples=50, deadline=None)
@given(logits, samplings())
def test_constrain_leaves_its_argument(row: list[float], sampling: Sampling) -> None:
    given_logits = torch.tensor(row)
    constrain(given_logits, sampling, ())
    assert given_logits.tolist() == torch.tensor(row).tolist()


def test_a_rows_choice_does_not_depend_on_the_others() -> None:
    rows = torch.randn(6, 40, generator=torch.Generator().manual_seed(1))
    rules = [Sampling(max_tokens=9, temperature=t, top_k=k, top_p=p, seed=s)
             for t, k, p, s in [(0, 0, 1, 0), (1, 5, 1, 3), (0.7, 0, 0.8, 3), (2, 40, 0.5, 9), (0, 3, 1, 1),
                                (1, 0, 1, 4)]]
    together = choose(rows, rules, [0, 1, 2, 3, 4, 5])
    assert together == [choose(rows[i:i + 1], [rules[i]], [i])[0] for i in range(6)]


def test_draws_follow_the_probabilities() -> None:
    sampling = Sampling(max_tokens=10**6, temperature=1.0, top_k=3)
    row = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5])
    counts = Counter(choose(row.expand(4000, -1), [sampling] * 4000, range(4000)))
    expected = dict(naive_shares(row.tolist() + [-math.inf] * (VOCABULARY - 5), sampling))
    assert set(counts) == {2, 1, 4}
    for token, share in expected.items():
        # Four standard deviations of a binomial; the numbers are fixed by the seed.
        assert abs(counts[token] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)


def test_the_same_seed_draws_the_same_and_another_differs() -> None:
    rows = torch.zeros(64, 50)

    def draws(seed: int) -> list[int]:
        return choose(rows, [Sampling(max_tokens=64, temperature=1.0, seed=seed)] * 64, range(64))

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert len(set(draws(7))) > 10


def test_the_budgets_token_is_forced_even_where_it_is_forbidden() -> None:
    sampling = Sampling(max_tokens=2, forbidden=(3,), first=(1,), at_budget=3)
    assert choose(constrain(torch.zeros(5), sampling, (1,)).unsqueeze(0), [sampling], [1]) == [3]
    alone = replace(sampling, max_tokens=1)
    assert choose(constrain(torch.zeros(5), alone, ()).unsqueeze(0), [alone], [0]) == [3]


def test_rules_in_half_precision_give_float32() -> None:
    made = constrain(torch.zeros(5, dtype=torch.bfloat16), Sampling(max_tokens=1, bias=((2, 0.001),)), ())
    assert made.dtype == torch.float32
    assert made[2] == np.float32(0.001)


@pytest.mark.parametrize(("sampling", "says"), [
    (Sampling(max_tokens=0), "max_tokens is 0"),
    (Sampling(max_tokens=1, temperature=-1.0), "temperature"),
    (Sampling(max_tokens=1, temperature=math.nan), "temperature"),
    (Sampling(max_tokens=1, top_p=0.0), "top_p"),
    (Sampling(max_tokens=1, top_k=-1), "top_k"),
    (Sampling(max_tokens=1, repetition_penalty=0.0), "repetition_penalty"),
    (Sampling(max_tokens=1, stop=frozenset({12})), "stop names token 12"),
    (Sampling(max_tokens=1, forbidden=(-1,)), "forbidden names token -1"),
    (Sampling(max_tokens=1, bias=((99, 1.0),)), "bias names token 99"),
    (Sampling(max_tokens=1, at_budget=12), "at_budget names token 12"),
    (Sampling(max_tokens=1, forbidden=tuple(range(12))), "leaves no token"),
    (Sampling(max_tokens=1, first=(3,), forbidden=(3, 4)), "leaves no token"),
])
def test_rules_that_cannot_be_followed_are_refused_with_the_reason(sampling: Sampling, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check(sampling, VOCABULARY)
