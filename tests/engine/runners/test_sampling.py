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

from duologue.engine.runners.base import Sampling, Swap
from duologue.engine.runners.drawing import order
from duologue.engine.runners.rules import check, uniform
from duologue.engine.runners.sampling import choose, constrain

VOCABULARY = 12

ids = st.integers(0, VOCABULARY - 1)
some_ids = st.lists(ids, max_size=5).map(tuple)
# Few values, so that there are ties, and a distance between those that differ.
logits = st.lists(st.integers(-6, 6).map(lambda n: n / 2), min_size=VOCABULARY, max_size=VOCABULARY)


swaps = st.builds(Swap, ids, ids, ids, st.booleans())


@st.composite
def samplings(draw: st.DrawFn) -> Sampling:
    sampling = Sampling(
        max_tokens=draw(st.integers(1, 4)), temperature=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        top_k=draw(st.integers(0, VOCABULARY + 1)), top_p=draw(st.sampled_from([0.0513, 0.3017, 0.7713, 1.0])),
        repetition_penalty=draw(st.sampled_from([0.8, 1.0, 1.3])),
        repetition=draw(st.sampled_from(["once", "often", "divide"])), repetition_window=draw(st.integers(0, 4)),
        recent=draw(some_ids), forbidden=draw(some_ids), first=draw(some_ids),
        bias=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([-3.0, 2.5])), max_size=3))),
        damp=tuple(draw(st.lists(st.tuples(ids, st.sampled_from([0.5, 1.1])), max_size=3))),
        tried=draw(st.none() | ids), at_once=draw(st.none() | st.tuples(ids, st.integers(1, 3))),
        swap=draw(st.none() | swaps), at_budget=draw(st.none() | ids), seed=draw(st.integers(0, 5)))
    try:
        check(sampling, VOCABULARY)
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


def naive_constrain(row: list[float], sampling: Sampling, tokens: tuple[int, ...]) -> list[float]:
    if sampling.at_budget is not None and len(tokens) == sampling.max_tokens - 1:
        return only(row, sampling.at_budget)
    held = sampling.first if not tokens else ()
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


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(logits, samplings(), st.lists(ids, max_size=3).map(tuple)), min_size=1, max_size=4))
def test_the_rules_are_those_of_the_naive_version(cases: list[tuple[list[float], Sampling, tuple[int, ...]]]) -> None:
    cases = [(row, sampling, tokens[:sampling.max_tokens - 1]) for row, sampling, tokens in cases]
    given_logits = torch.tensor([row for row, *_ in cases])
    rules, said = [sampling for _, sampling, _ in cases], [tokens for *_, tokens in cases]
    made = constrain(given_logits, rules, said)
    for row, (values, sampling, tokens) in zip(made, cases, strict=True):
        np.testing.assert_allclose(row.numpy(), naive_constrain(values, sampling, tokens), rtol=1e-6)
    for token, row, (_, sampling, tokens) in zip(choose(given_logits, rules, said), made, cases, strict=True):
        expected = naive_choice(row.tolist(), sampling, len(tokens))
        swap = sampling.swap
        if swap is not None and expected == swap.chosen \
                and (swap.at_first if not tokens else tokens[-1] != swap.but_after):
            expected = swap.into
        assert expected in (token, None)


@settings(max_examples=50, deadline=None)
@given(logits, samplings())
def test_choosing_leaves_the_logits(row: list[float], sampling: Sampling) -> None:
    given_logits = torch.tensor([row])
    choose(given_logits, [sampling], [()])
    assert given_logits.tolist() == [torch.tensor(row).tolist()]


def test_a_rows_choice_does_not_depend_on_the_others() -> None:
    rows = torch.randn(8, 400, generator=torch.Generator().manual_seed(1))
    rules = [Sampling(max_tokens=9, temperature=t, top_k=k, top_p=p, seed=s, tried=tried, repetition_penalty=r,
                      recent=(s,), forbidden=(5, 6))
             for t, k, p, s, tried, r in [
                 (0, 0, 1, 0, 7, 1), (1, 5, 1, 3, None, 1.1), (0.7, 0, 0.8, 3, 8, 1), (2, 40, 0.5, 9, 9, 2),
                 (0, 3, 1, 1, None, 1.2), (1, 0, 1, 4, 1, 1), (1, 64, 1, 4, 1, 1), (1, 65, 1, 4, 1, 1)]]
    said = [tuple(range(i)) for i in range(8)]
    together = choose(rows, rules, said)
    assert together == [choose(rows[i:i + 1], [rules[i]], [said[i]])[0] for i in range(8)]


def flat(size: int) -> list[tuple[int, ...]]:
    """Segments of which the first so many tokens are there."""
    return [(0,) * n for n in range(size)]


def test_draws_follow_the_probabilities() -> None:
    sampling = Sampling(max_tokens=10**6, temperature=1.0, top_k=3)
    row = torch.tensor([0.0, 1.0, 2.0, -1.0, 0.5])
    counts = Counter(choose(row.expand(4000, -1), [sampling] * 4000, flat(4000)))
    expected = dict(naive_shares(row.tolist() + [-math.inf] * (VOCABULARY - 5), sampling))
    assert set(counts) == {2, 1, 4}
    for token, share in expected.items():
        # Four standard deviations of a binomial; the numbers are fixed by the seed.
        assert abs(counts[token] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_the_few_largest_are_those_of_all_in_order(seed: int, count: int) -> None:
    made = torch.Generator().manual_seed(seed)
    row = torch.randint(-40, 40, (2, 300), generator=made).float() / 8
    row[0, 7], row[0, 9], row[1, 250:] = 0.0, -0.0, -math.inf
    scores, ids = order(row, count)
    all_scores, all_ids = order(row, 300)
    assert ids.tolist() == all_ids[:, :count].tolist()
    assert scores.tolist() == all_scores[:, :count].tolist()


def test_the_same_seed_draws_the_same_and_another_differs() -> None:
    rows = torch.zeros(64, 50)

    def draws(seed: int) -> list[int]:
        return choose(rows, [Sampling(max_tokens=64, temperature=1.0, seed=seed)] * 64, flat(64))

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert len(set(draws(7))) > 10


def test_what_is_tried_is_chosen_as_often_as_the_model_means_it() -> None:
    # Its own probability is that of the untouched logits, though the draw among the others is at a low temperature.
    rule = Sampling(max_tokens=10**6, temperature=0.1, top_k=1, tried=1, repetition_penalty=9.0, recent=(1,))
    row = torch.tensor([2.0, 1.0, 0.0])
    counts = Counter(choose(row.expand(4000, -1), [rule] * 4000, flat(4000)))
    share = math.exp(1) / (math.exp(2) + math.exp(1) + 1)
    assert set(counts) == {0, 1}
    assert abs(counts[1] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)
    # The two draws of a token have numbers of their own.
    assert len({uniform(3, place, stream) for place in range(50) for stream in (0, 1)}) == 100


def chosen(values: list[float], rule: Sampling, tokens: tuple[int, ...] = ()) -> int:
    return choose(torch.tensor([values]), [rule], [tokens])[0]


def test_the_budgets_token_is_forced_even_where_it_is_forbidden() -> None:
    sampling = Sampling(max_tokens=2, forbidden=(3,), first=(1,), at_budget=3, tried=3)
    assert chosen([0.0] * 5, sampling, (1,)) == 3
    assert chosen([0.0] * 5, replace(sampling, max_tokens=1)) == 3


def test_what_is_forced_first_is_not_lost_to_what_is_tried() -> None:
    rule = Sampling(max_tokens=4, first=(1,), tried=0)
    assert chosen([9.0, 0.0, 5.0], rule) == 1
    assert chosen([9.0, 0.0, 5.0], rule, (1,)) == 0
    assert chosen([9.0, 0.0, 5.0], replace(rule, first=(0, 1))) == 0


def test_what_is_near_enough_to_the_largest_is_chosen_at_once() -> None:
    rule = Sampling(max_tokens=4, at_once=(1, 2))
    assert chosen([3.0, 1.0, 0.0], rule) == 1
    assert chosen([3.0, 1.0, 2.0], rule) == 0
    assert chosen([3.0, 1.0, 2.0], replace(rule, forbidden=(0,))) == 1
    assert chosen([3.0, 9.0, 2.0], replace(rule, forbidden=(1,))) == 0


def test_a_swap_is_made_unless_behind_its_token() -> None:
    rule = Sampling(max_tokens=4, swap=Swap(1, 2, but_after=3, at_first=False))
    row = [0.0, 5.0, 1.0, 2.0]
    assert [chosen(row, rule, tokens) for tokens in ((), (0,), (0, 3), (3, 0))] == [1, 2, 1, 2]
    assert chosen(row, replace(rule, swap=Swap(1, 2, 3, at_first=True))) == 2
    # What was swapped in counts as what was chosen.
    penal = replace(rule, repetition_penalty=4.0)
    assert chosen(row, penal, (2,)) == 3
    assert chosen(row, replace(penal, recent=(2,)), ()) == 3


def test_repetition_counts_once_often_or_divides() -> None:
    row, told = torch.tensor([[2.0, -2.0, 8.0]]), [(0, 0, 1)]
    made = {kind: constrain(row, [Sampling(max_tokens=9, repetition_penalty=2.0, repetition=kind)], told).tolist()[0]
            for kind in ("once", "often", "divide")}
    assert made == {"once": [1.0, -4.0, 8.0], "often": [0.5, -4.0, 8.0], "divide": [1.0, -1.0, 8.0]}
    windowed = Sampling(max_tokens=9, repetition_penalty=2.0, repetition_window=2, recent=(2, 2, 2))
    assert constrain(row, [windowed], [(1,)]).tolist() == [[2.0, -4.0, 4.0]]


def test_rules_in_half_precision_give_float32() -> None:
    made = constrain(torch.zeros(1, 5, dtype=torch.bfloat16), [Sampling(max_tokens=1, bias=((2, 0.001),))], [()])
    assert made.dtype == torch.float32
    assert made[0, 2] == np.float32(0.001)


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
    (Sampling(max_tokens=1, repetition_window=-1), "repetition_window"),
    (Sampling(max_tokens=1, damp=((0, 0.0),)), "damp must be above 0"),
    (Sampling(max_tokens=1, damp=((12, 1.1),)), "damp names token 12"),
    (Sampling(max_tokens=1, tried=12), "tried names token 12"),
    (Sampling(max_tokens=1, at_once=(12, 1)), "at_once names token 12"),
    (Sampling(max_tokens=1, at_once=(1, 0)), "at_once is among the 0 largest"),
    (Sampling(max_tokens=1, swap=Swap(0, 12, 0, at_first=True)), "swap names token 12"),
    (Sampling(max_tokens=1, first=(3,), tried=3), "leaves no token"),
    (Sampling(max_tokens=1, at_budget=12), "at_budget names token 12"),
    (Sampling(max_tokens=1, forbidden=tuple(range(12))), "leaves no token"),
    (Sampling(max_tokens=1, first=(3,), forbidden=(3, 4)), "leaves no token"),
])
def test_rules_that_cannot_be_followed_are_refused_with_the_reason(sampling: Sampling, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check(sampling, VOCABULARY)
