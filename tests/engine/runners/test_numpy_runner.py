"""The light runner's tokens by any rules, held against the torch runner's."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.runners.base import Sampling, Segment, Tokens
from tests.engine.runners.kinds import on_numpy, on_torch
from tests.engine.runners.naive_sampling import samplings
from tests.engine.runners.torch_reference import Told, embeddings, finish, small, tokens

CONFIG, TENSORS = small()
GREEDY = samplings(vocabulary=CONFIG.vocab_size, tokens=9, temperatures=(0.0,))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(GREEDY, st.frozensets(st.integers(0, CONFIG.vocab_size - 1), max_size=3), st.floats(0, 1)),
                min_size=2, max_size=4), st.integers(0, 99))
def test_greedy_tokens_are_the_torch_runners_by_any_rules_behind_any_cut(
        turns: list[tuple[Sampling, frozenset[int], float]], seed: int) -> None:
    runners = [made((CONFIG, TENSORS), max_length=256) for made in (on_torch, on_numpy)]
    held = 0
    for turn, (rules, stop, share) in enumerate(turns):
        keep = int(held * share)
        pieces = (tokens(3, seed + turn, CONFIG.vocab_size), embeddings(2, seed + turn, CONFIG.hidden_size),
                  Tokens((turn,)))
        asked = Segment("a", keep, pieces, replace(rules, stop=stop))
        ours, light = (finish(made, asked, Segment("b", 0, pieces, rules)) for made in runners)
        assert {name: heard(told) for name, told in light.items()} == {name: heard(told) for name, told in ours.items()}
        held = ours["a"].cached
        for made in runners:
            made.drop("b")


def heard(told: Told) -> tuple[object, ...]:
    return told.tokens, told.finish, told.cached
