"""The rules of sampling, against a naive version in numpy, and one by one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.runners.base import Copy, Sampling, Swap
from duologue.engine.runners.drawing import order
from duologue.engine.runners.numpy.choosing import Chooser
from duologue.engine.runners.rules import check, uniform
from duologue.engine.runners.sampling import choose as torch_choose
from duologue.engine.runners.sampling import constrain
from tests.engine.runners.naive_sampling import (
    VOCABULARY,
    ids,
    logits,
    naive_constrain,
    naive_shares,
    naive_token,
    samplings,
)

Choose = Callable[[torch.Tensor, Sequence[Sampling], Sequence[Sequence[int]]], list[int]]


def numpy_choose(rows: torch.Tensor, samplings: Sequence[Sampling], said: Sequence[Sequence[int]]) -> list[int]:
    return [Chooser(sampling).choose(row, tokens)
            for row, sampling, tokens in zip(rows.numpy(), samplings, said, strict=True)]


both = pytest.mark.parametrize("choose", [torch_choose, numpy_choose], ids=["torch", "numpy"])


Case = tuple[list[float], Sampling, tuple[int, ...]]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(logits, samplings(), st.lists(ids, max_size=3).map(tuple)), min_size=1, max_size=4))
def test_the_rules_are_those_of_the_naive_version(cases: list[Case]) -> None:
    cases = [(row, sampling, tokens[:sampling.max_tokens - 1]) for row, sampling, tokens in cases]
    rows = torch.tensor([row for row, *_ in cases])
    rules, said = [sampling for _, sampling, _ in cases], [tokens for *_, tokens in cases]
    made = constrain(rows, rules, said)
    for row, case in zip(made, cases, strict=True):
        np.testing.assert_allclose(row.numpy(), naive_constrain(*case), rtol=1e-6)
    for row, sampling, tokens, *chosen in zip(made, rules, said, torch_choose(rows, rules, said),
                                              numpy_choose(rows, rules, said), strict=True):
        expected = naive_token(row.tolist(), sampling, tokens)
        assert expected is None or chosen == [expected] * 2


@settings(max_examples=50, deadline=None)
@given(logits, samplings())
@both
def test_choosing_leaves_the_logits(choose: Choose, row: list[float], sampling: Sampling) -> None:
    given_logits = torch.tensor([row])
    choose(given_logits, [sampling], [()])
    assert given_logits.tolist() == [torch.tensor(row).tolist()]


@both
def test_a_rows_choice_does_not_depend_on_the_others(choose: Choose) -> None:
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


@both
def test_draws_follow_the_probabilities(choose: Choose) -> None:
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


@both
def test_the_same_seed_draws_the_same_and_another_differs(choose: Choose) -> None:
    rows = torch.zeros(64, 50)

    def draws(seed: int) -> list[int]:
        return choose(rows, [Sampling(max_tokens=64, temperature=1.0, seed=seed)] * 64, flat(64))

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert len(set(draws(7))) > 10


@both
def test_what_is_tried_is_chosen_as_often_as_the_model_means_it(choose: Choose) -> None:
    # Its own probability is that of the untouched logits, though the draw among the others is at a low temperature.
    rule = Sampling(max_tokens=10**6, temperature=0.1, top_k=1, tried=1, repetition_penalty=9.0, recent=(1,))
    row = torch.tensor([2.0, 1.0, 0.0])
    counts = Counter(choose(row.expand(4000, -1), [rule] * 4000, flat(4000)))
    share = math.exp(1) / (math.exp(2) + math.exp(1) + 1)
    assert set(counts) == {0, 1}
    assert abs(counts[1] / 4000 - share) < 4 * math.sqrt(share * (1 - share) / 4000)
    # The two draws of a token have numbers of their own.
    assert len({uniform(3, place, stream) for place in range(50) for stream in (0, 1)}) == 100


def chosen(choose: Choose, values: list[float], rule: Sampling, tokens: tuple[int, ...] = ()) -> int:
    return choose(torch.tensor([values]), [rule], [tokens])[0]


@both
def test_the_budgets_token_is_forced_even_where_it_is_forbidden(choose: Choose) -> None:
    sampling = Sampling(max_tokens=2, forbidden=(3,), first=(1,), at_budget=3, tried=3)
    assert chosen(choose, [0.0] * 5, sampling, (1,)) == 3
    assert chosen(choose, [0.0] * 5, replace(sampling, max_tokens=1)) == 3


@both
def test_what_is_forced_first_is_not_lost_to_what_is_tried(choose: Choose) -> None:
    rule = Sampling(max_tokens=4, first=(1,), tried=0)
    assert chosen(choose, [9.0, 0.0, 5.0], rule) == 1
    assert chosen(choose, [9.0, 0.0, 5.0], rule, (1,)) == 0
    assert chosen(choose, [9.0, 0.0, 5.0], replace(rule, first=(0, 1))) == 0


@both
def test_what_is_near_enough_to_the_largest_is_chosen_at_once(choose: Choose) -> None:
    rule = Sampling(max_tokens=4, at_once=(1, 2))
    assert chosen(choose, [3.0, 1.0, 0.0], rule) == 1
    assert chosen(choose, [3.0, 1.0, 2.0], rule) == 0
    assert chosen(choose, [3.0, 1.0, 2.0], replace(rule, forbidden=(0,))) == 1
    assert chosen(choose, [3.0, 9.0, 2.0], replace(rule, forbidden=(1,))) == 0


@both
def test_a_swap_is_made_unless_behind_its_token(choose: Choose) -> None:
    rule = Sampling(max_tokens=4, swap=Swap(1, 2, but_after=3, at_first=False))
    row = [0.0, 5.0, 1.0, 2.0]
    assert [chosen(choose, row, rule, tokens) for tokens in ((), (0,), (0, 3), (3, 0))] == [1, 2, 1, 2]
    assert chosen(choose, row, replace(rule, swap=Swap(1, 2, 3, at_first=True))) == 2
    # What was swapped in counts as what was chosen.
    penal = replace(rule, repetition_penalty=4.0)
    assert chosen(choose, row, penal, (2,)) == 3
    assert chosen(choose, row, replace(penal, recent=(2,)), ()) == 3


@both
def test_behind_a_token_that_opens_one_a_piece_of_a_text_is_copied(choose: Choose) -> None:
    # Words: (5,), (6, 7), (8,); tokens 1 and 2 open a piece, 2 and 3 close it.
    rule = Sampling(max_tokens=9, copy=Copy((1, 2), (2, 3), (((5,), (6, 7), (8,)), ((6, 7), (9,)))))
    row = [float(token == 0) for token in range(12)]

    def may(*said: int) -> set[int]:
        """All that can be chosen there."""
        return {token for token in range(12)
                if chosen(choose, [9.0 * (other == token) + row[other] for other in range(12)], rule, said) == token}

    assert may() == may(4) == set(range(12))
    assert may(1) == may(4, 2) == {5, 6, 8, 9}
    assert may(1, 6) == {7}
    assert may(1, 5) == {6, 2, 3}
    assert may(1, 6, 7) == {8, 9, 2, 3}
    assert may(1, 6, 7, 8) == {2, 3}
    assert may(1, 5, 3) == set(range(12))
    assert may(1, 5, 2, 9) == {2, 3}


def test_repetition_counts_once_often_or_divides() -> None:
    row, told = torch.tensor([[2.0, -2.0, 8.0]]), [(0, 0, 1)]
    made = {kind: constrain(row, [Sampling(max_tokens=9, repetition_penalty=2.0, repetition=kind)], told).tolist()[0]
            for kind in ("once", "often", "divide")}
    assert made == {"once": [1.0, -4.0, 8.0], "often": [0.5, -4.0, 8.0], "divide": [1.0, -1.0, 8.0]}
    windowed = Sampling(max_tokens=9, repetition_penalty=2.0, repetition_window=2, recent=(2, 2, 2))
    assert constrain(row, [windowed], [(1,)]).tolist() == [[2.0, -4.0, 4.0]]


@both
def test_what_shifts_logits_shifts_the_choice(choose: Choose) -> None:
    penal = Sampling(max_tokens=9, repetition_penalty=2.0, recent=(0, 0))
    below, above = [-2.0, -3.0], [8.0, 3.0]
    assert [chosen(choose, below, replace(penal, repetition=kind)) for kind in ("once", "often", "divide")] == [1, 1, 0]
    assert [chosen(choose, above, replace(penal, repetition=kind)) for kind in ("once", "often", "divide")] == [0, 1, 0]
    assert chosen(choose, above, Sampling(max_tokens=9, bias=((1, 3.0), (1, 2.5)))) == 1
    assert chosen(choose, above, Sampling(max_tokens=9, damp=((0, 2.0), (0, 1.5)))) == 1
    assert chosen(choose, below, Sampling(max_tokens=9, damp=((0, 2.0),))) == 1


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
    (Sampling(max_tokens=1, copy=Copy((1,), (2,), (((12,),),))), "copy names token 12"),
    (Sampling(max_tokens=1, copy=Copy((1,), (), (((3,),),))), "copy needs tokens that close it"),
    (Sampling(max_tokens=1, copy=Copy((1,), (2,), ())), "texts with words"),
    (Sampling(max_tokens=1, copy=Copy((1,), (2,), ((),))), "texts with words"),
    (Sampling(max_tokens=1, copy=Copy((1,), (2,), (((),),))), "texts with words"),
    (Sampling(max_tokens=1, forbidden=(3,), copy=Copy((1,), (2,), (((3,),),))), "take out what copy allows"),
    (Sampling(max_tokens=1, tried=2, copy=Copy((1,), (2,), (((3,),),))), "take out what copy allows"),
])
def test_rules_that_cannot_be_followed_are_refused_with_the_reason(sampling: Sampling, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        check(sampling, VOCABULARY)
