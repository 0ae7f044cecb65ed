"""The contract of ``Runner``, kept by our own: fairness, interruption, budgets, and failing alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from duologue.engine.config import ConfigError
from duologue.engine.runners.base import Embeddings, Finish, Piece, Runner, Sampling, Segment, Tokens
from tests.engine.runners.kinds import Kind
from tests.engine.runners.torch_reference import (
    Told,
    embeddings,
    finish,
    hear,
    reference,
    segment,
    small,
    tiny,
    tokens,
)


def test_it_is_a_runner(kind: Kind) -> None:
    made: Runner = kind(positions=1000, block=16, max_length=300, max_sessions=3)
    capacity = made.capacity
    assert (capacity.positions, capacity.block, capacity.max_length, capacity.max_sessions) == (992, 16, 300, 3)
    assert (capacity.hidden_size, capacity.vocabulary) == (128, 272)
    assert made.wake_fd is None
    assert not made.ready
    assert made.step() == []


# --- no call waits for another ---


def test_a_long_prefill_does_not_hold_up_anothers_tokens(kind: Kind) -> None:
    made = kind(prefill_chunk=16)
    told: dict[str, Told] = {}
    made.submit(segment("talking", 0, [tokens(5, 1)], 25))
    hear(made, told)
    made.submit(segment("rebuilt", 0, [tokens(400, 2)], 1))
    for steps in range(2, 26):
        hear(made, told)
        assert len(told["talking"].tokens) == steps
    assert "rebuilt" not in told
    assert made.keepable("rebuilt", 1000) == 24 * 16


def test_a_units_few_positions_are_prefilled_at_once_beside_a_long_prefill(kind: Kind) -> None:
    made = kind(prefill_chunk=32)
    told: dict[str, Told] = {}
    made.submit(segment("rebuilt", 0, [tokens(400, 2)], 1))
    hear(made, told)
    made.submit(segment("unit", 0, [tokens(2, 1), embeddings(10, 1)], 1))
    hear(made, told)
    assert told["unit"].finish is Finish.LENGTH
    assert made.keepable("rebuilt", 1000) == 32 + 20


def test_what_is_ready_runs_at_once(kind: Kind) -> None:
    made = kind()
    made.submit(segment("a", 0, [tokens(9, 1)], 5))
    assert [said.session for said in made.step()] == ["a"]
    made.submit(segment("b", 0, [tokens(9, 1)], 5))
    assert [said.session for said in made.step()] == ["a", "b"]


# --- how a segment ends ---


def test_a_segment_ends_with_a_stop_token_or_the_last_it_may_have(kind: Kind) -> None:
    expected = reference().greedy([tokens(30, 5)], 8)
    assert expected[3] not in expected[:3]
    stopped = finish(kind(), segment("a", 0, [tokens(30, 5)], 8, stop=[expected[3]]))["a"]
    assert (stopped.tokens, stopped.finish, stopped.cached) == (expected[:4], Finish.STOP, 33)
    last = finish(kind(), segment("a", 0, [tokens(30, 5)], 4))["a"]
    assert (last.tokens, last.finish, last.cached) == (expected[:4], Finish.LENGTH, 33)
    both = finish(kind(), segment("a", 0, [tokens(30, 5)], 4, stop=[expected[3]]))["a"]
    assert both.finish is Finish.STOP


def test_the_rules_hold_in_a_segment(kind: Kind) -> None:
    rules = Sampling(max_tokens=6, first=(7, 9), forbidden=tuple(range(100, 272)), at_budget=261)
    told = finish(kind(), Segment("a", 0, (tokens(30, 5),), rules))["a"]
    assert told.tokens[0] in (7, 9)
    assert max(told.tokens[:-1]) < 100
    assert told.tokens[-1] == 261
    drawn = replace(rules, temperature=1.0, seed=3)
    first, again, other = (finish(kind(), Segment("a", 0, (tokens(30, 5),), rule))["a"].tokens
                           for rule in (drawn, drawn, replace(drawn, seed=4)))
    assert first == again
    assert first != other


def test_an_interrupted_session_has_what_it_has_and_goes_on(kind: Kind) -> None:
    made = kind()
    told: dict[str, Told] = {}
    expected = reference().greedy([tokens(30, 5)], 12)
    made.submit(segment("a", 0, [tokens(30, 5)], 12))
    for _ in range(4):
        hear(made, told)
    made.interrupt("a")
    made.interrupt("a")
    assert [said.finish for said in hear(made, told)] == [Finish.INTERRUPTED]
    assert not made.ready
    assert (told["a"].tokens, told["a"].cached) == (expected[:4], 33)
    on = finish(made, segment("a", 33, [Tokens((expected[3],))], 8))["a"]
    assert on.tokens == expected[4:]


def test_a_prefill_can_be_interrupted(kind: Kind) -> None:
    made = kind(prefill_chunk=10)
    told: dict[str, Told] = {}
    made.submit(segment("a", 0, [tokens(30, 5)], 12))
    hear(made, told)
    made.interrupt("a")
    hear(made, told)
    assert (told["a"].finish, told["a"].tokens, told["a"].cached) == (Finish.INTERRUPTED, [], 10)
    assert made.keepable("a", 30) == 10


def test_interrupting_what_is_not_running_says_nothing(kind: Kind) -> None:
    made = kind()
    made.interrupt("nobody")
    assert not made.ready


def test_nothing_more_is_said_of_a_dropped_session(kind: Kind) -> None:
    made = kind(positions=64)
    made.submit(segment("a", 0, [tokens(40, 5)], 12))
    made.step()
    made.interrupt("a")
    made.drop("a")
    made.drop("a")
    assert not made.ready
    assert made.keepable("a", 40) == 0
    assert finish(made, segment("b", 0, [tokens(60, 5)], 1))["b"].finish is Finish.LENGTH


def test_after_close_nothing_is_held(kind: Kind) -> None:
    made = kind()
    finish(made, segment("a", 0, [tokens(40, 5)], 1))
    made.submit(segment("b", 0, [tokens(40, 5)], 12))
    made.close()
    made.close()
    assert not made.ready
    assert made.keepable("a", 40) == 0


# --- the caller's errors ---


def test_a_session_has_one_segment_at_a_time(kind: Kind) -> None:
    made = kind()
    made.submit(segment("a", 0, [tokens(5, 1)], 2))
    with pytest.raises(ValueError, match="has a segment already"):
        made.submit(segment("a", 0, [tokens(5, 1)], 2))


@pytest.mark.parametrize("keep", [-1, 7])
def test_only_what_is_held_can_be_kept(kind: Kind, keep: int) -> None:
    made = kind()
    finish(made, segment("a", 0, [tokens(5, 1)], 2))
    assert made.keepable("a", 7) == 6
    with pytest.raises(ValueError, match=f"cannot keep {keep} of 6"):
        made.submit(segment("a", keep, [tokens(5, 1)], 2))
    assert made.keepable("a", 7) == 6


# --- what fails, fails alone ---

GOOD = tokens(5, 1)
FAULTS: dict[str, tuple[Segment, str]] = {
    "no position": (segment("bad", 0, [], 2), "no position"),
    "an empty piece": (segment("bad", 0, [Tokens(())], None), "no position"),
    "an id too large": (segment("bad", 0, [GOOD, Tokens((272,))], 2), "token 272 is given, but the vocabulary has 272"),
    "an id below 0": (segment("bad", 0, [Tokens((-1,))], 2), "token -1"),
    "rows too narrow": (segment("bad", 0, [embeddings(3, 1, width=127)], 2), r"\[3, 127\], must be \[n, 128\]"),
    "no rows at all": (segment("bad", 0, [Embeddings(np.zeros(5, np.float32), b"")], 2), r"\[5\], must be"),
    "not a number": (segment("bad", 0, [Embeddings(np.full((2, 128), np.nan, np.float32), b"")], 2), "not finite"),
    "rules": (segment("bad", 0, [GOOD], 0), "max_tokens is 0"),
    "too long": (segment("bad", 0, [tokens(90, 1)], 12), "may come to 101 positions, but the longest is 100"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_the_model_cannot_take_fails_its_session_alone(kind: Kind, name: str) -> None:
    bad, says = FAULTS[name]
    made = kind(max_length=100)
    finish(made, segment("bad", 0, [tokens(9, 3)], 2))
    told = finish(made, segment("good", 0, [tokens(30, 5)], 6), bad)
    assert told["bad"].finish is Finish.FAILED
    assert (told["bad"].tokens, told["bad"].cached, made.keepable("bad", 9)) == ([], 0, 0)
    assert told["good"].tokens == reference().greedy([tokens(30, 5)], 6)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(told["bad"].detail)
    again = finish(made, segment("bad", 0, [tokens(30, 5)], 6))["bad"]
    assert again.tokens == told["good"].tokens


def test_as_long_as_can_be_is_not_too_long(kind: Kind) -> None:
    told = finish(kind(max_length=100, positions=112), segment("a", 0, [tokens(90, 1)], 11))["a"]
    assert (told.finish, told.cached) == (Finish.LENGTH, 100)


def test_a_session_for_which_the_kv_has_no_room_fails_alone(kind: Kind) -> None:
    made = kind(positions=64, block=16)
    told = finish(made, segment("first", 0, [tokens(30, 5)], 12), segment("second", 0, [tokens(40, 6)], 12))
    assert told["first"].finish is Finish.LENGTH
    assert told["first"].tokens == reference().greedy([tokens(30, 5)], 12)
    assert told["second"].finish is Finish.FAILED
    assert "no room" in told["second"].detail
    assert made.keepable("second", 64) == 0


def test_a_session_too_many_fails_alone(kind: Kind) -> None:
    made = kind(max_sessions=2)
    finish(made, segment("parked", 0, [tokens(3, 1)], None))
    told = finish(made, segment("running", 0, [tokens(3, 1)], 3), segment("third", 0, [tokens(3, 1)], 3))
    assert told["third"].finish is Finish.FAILED
    assert "2 sessions" in told["third"].detail
    assert told["running"].finish is Finish.LENGTH
    assert finish(made, segment("parked", 3, [tokens(3, 1)], 1))["parked"].finish is Finish.LENGTH


def test_a_session_whose_numbers_are_not_finite_fails_alone(kind: Kind) -> None:
    config, tensors = tiny()
    embedding = tensors["model.embed_tokens.weight"].clone()
    embedding[7] = torch.nan
    made = kind((config, {**tensors, "model.embed_tokens.weight": embedding}))
    told = finish(made, segment("good", 0, [GOOD], 6), segment("bad", 0, [GOOD, Tokens((7,)), GOOD], 6))
    assert told["bad"].finish is Finish.FAILED
    assert "not finite" in told["bad"].detail
    assert made.keepable("bad", 9) == 0
    assert told["good"].tokens == reference().greedy([GOOD], 6)
    assert finish(made, segment("bad", 0, [GOOD], 6))["bad"].tokens == told["good"].tokens


# --- options ---


def test_longer_sessions_than_the_model_goes_are_refused_with_the_reason(kind: Kind) -> None:
    with pytest.raises(ConfigError, match="max_length is 4097, but the model goes up to 4096"):
        kind(max_length=4097)


def test_a_missing_tensor_is_named(kind: Kind) -> None:
    config, tensors = tiny()
    some = {name: tensor for name, tensor in tensors.items() if "layers.2.self_attn.k_norm" not in name}
    with pytest.raises(ConfigError, match=r"lacks tensor model\.layers\.2\.self_attn\.k_norm\.weight"):
        kind((config, some))


def test_tensors_of_other_modules_are_passed_over(kind: Kind) -> None:
    config, tensors = small()
    more = {**tensors, "emb_text.weight": torch.zeros(3)}
    pieces: list[Piece] = [tokens(5, 1, config.vocab_size)]
    assert finish(kind((config, more), max_length=100), segment("a", 0, pieces, 3))["a"].tokens \
        == finish(kind((config, tensors), max_length=100), segment("a", 0, pieces, 3))["a"].tokens
