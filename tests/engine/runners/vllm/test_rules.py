"""The rules of ``Sampling`` on vLLM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from duologue.engine.runners.base import Copy, Finish, Sampling, Segment, Swap
from duologue.engine.runners.vllm.inputs import from_plain, plain
from duologue.engine.runners.vllm.runner import VllmRunner
from tests.engine.runners import torch_reference
from tests.engine.runners.kinds import KINDS
from tests.engine.runners.torch_reference import Told, reference, segment, tokens
from tests.engine.runners.vllm.driving import finish

GIVEN = tokens(12, 60)


def answer(made: VllmRunner, session: str = "a", **rules: Any) -> Told:
    return finish(made, Segment(session, 0, (GIVEN,), Sampling(**rules)))[session]


def ranking() -> list[int]:
    """Ids by the logit of the first token, the largest first."""
    _, logits = reference().states([GIVEN])
    return [int(id) for id in np.argsort(-logits[-1])]


def test_the_first_token_is_one_of_first(made: VllmRunner) -> None:
    ids = ranking()
    said = answer(made, max_tokens=5, first=(ids[200], ids[100])).tokens
    assert said[0] == ids[100]
    assert said[1:] == finish(made, segment("b", 0, [GIVEN, tokens_of(said[:1])], 4))["b"].tokens


def tokens_of(ids: list[int]) -> Any:
    return type(GIVEN)(tuple(ids))


def test_forbidden_tokens_are_never_chosen(made: VllmRunner) -> None:
    ids = ranking()
    assert answer(made, max_tokens=1, forbidden=tuple(ids[:5])).tokens == [ids[5]]
    assert set(answer(made, max_tokens=60, forbidden=tuple(range(200))).tokens) <= set(range(200, 272))


def test_the_last_token_is_at_budget(made: VllmRunner) -> None:
    told = answer(made, max_tokens=6, at_budget=77)
    assert told.tokens[-1] == 77
    assert told.tokens[:5] == reference().greedy([GIVEN], 5)
    assert told.finish is Finish.LENGTH
    assert answer(made, max_tokens=6, at_budget=77, stop=frozenset({77})).finish is Finish.STOP


def test_rules_are_the_segment_s_and_not_the_session_s(made: VllmRunner) -> None:
    first = answer(made, max_tokens=4, first=(5,), at_budget=6).tokens
    told = finish(made, segment("a", 15, [tokens_of([6])], 5))["a"]
    assert told.tokens == finish(made, segment("b", 0, [GIVEN, tokens_of([*first[:3], 6])], 5))["b"].tokens
    assert told.tokens[-1] != 6


def answers(made: VllmRunner, rules: Sequence[dict[str, Any]]) \
        -> tuple[list[dict[str, list[int]]], dict[str, list[int]]]:
    """What our own runners and vLLM answer to the same sequence by each of ``rules``."""
    segments = [Segment(f"s{i}", 0, (GIVEN,), Sampling(max_tokens=20 + i, **rule)) for i, rule in enumerate(rules)]
    ours = [torch_reference.finish(kind(), *segments) for kind in KINDS.values()]
    return [said(each) for each in ours], said(finish(made, *segments))


def said(told: dict[str, Told]) -> dict[str, list[int]]:
    return {name: each.tokens for name, each in told.items()}


def test_rules_choose_as_our_own_runners_do_drawn_tokens_too(made: VllmRunner) -> None:
    ours, theirs = answers(made, [
        {"bias": ((3, 4.0), (9, 2.0)), "repetition_penalty": 1.3, "recent": (3, 9, 40)},
        {"temperature": 0.8, "top_k": 20, "top_p": 0.9, "seed": 11, "forbidden": (1, 2, 3)},
        {"temperature": 1.2, "seed": 12, "first": (8, 9, 10), "at_budget": 50},
        {}])
    assert ours == [theirs] * len(KINDS)


def test_rules_of_decisions_choose_as_our_own_runners_do(made: VllmRunner) -> None:
    near = ranking()[3]
    ours, theirs = answers(made, [
        {"temperature": 1.5, "seed": 13, "tried": 40, "damp": ((7, 2.0),), "repetition": "often",
         "repetition_penalty": 1.5, "repetition_window": 4},
        {"at_once": (near, 4), "swap": Swap(near, 60, 61, at_first=False), "repetition": "divide",
         "repetition_penalty": 1.2}])
    assert ours == [theirs] * len(KINDS)
    assert theirs["s1"][0] == near


def test_each_segment_draws_by_its_own_seed(made: VllmRunner) -> None:
    def twice(session: str, second: int) -> list[int]:
        first = answer(made, session, max_tokens=5, temperature=1.5, seed=1).tokens
        again = Segment(session, 16, (tokens_of(first[-1:]),), Sampling(max_tokens=12, temperature=1.5, seed=second))
        return finish(made, again)[session].tokens

    assert twice("a", 2) == twice("b", 2) != twice("c", 3)


def test_sampling_passes_a_message_queue_whole() -> None:
    full = Sampling(max_tokens=9, stop=frozenset({4, 2}), temperature=0.5, top_k=3, top_p=0.9, repetition_penalty=1.1,
                    repetition="often", repetition_window=3, recent=(1, 2), forbidden=(3,), first=(4, 5),
                    bias=((6, 0.5),), damp=((6, 1.1),), tried=7, at_once=(8, 2), swap=Swap(1, 2, 3, at_first=True),
                    copy=Copy((9,), (10, 11), (((1, 2), (5,)),)), at_budget=7, seed=8)
    values = plain(full)
    assert values is not None
    queued = {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}
    assert from_plain(queued) == full
    assert from_plain(queued).forbidden is from_plain(queued).forbidden
    assert plain(Sampling(max_tokens=9, stop=frozenset({4}), seed=3)) is None
