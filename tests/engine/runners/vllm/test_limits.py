"""What would stall or end vLLM for everybody is kept away from it, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from duologue.engine.config import ConfigError
from duologue.engine.runners.base import Embeddings, Finish, Piece, Sampling, Segment, Tokens
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.runner import VllmRunner
from tests.engine.runners.torch_reference import (
    Told,
    embeddings,
    reference,
    segment,
    tiny,
    tiny_weights,
    tokens,
)
from tests.engine.runners.vllm.conftest import BLOCK, KV_POSITIONS, MAX_MODEL_LEN, MAX_NUM_SEQS
from tests.engine.runners.vllm.driving import finish, hear


def test_capacity_is_what_vllm_has(made: VllmRunner) -> None:
    capacity = made.capacity
    assert (capacity.positions, capacity.block) == (KV_POSITIONS, BLOCK)
    assert (capacity.max_length, capacity.max_sessions) == (MAX_MODEL_LEN - 1, MAX_NUM_SEQS)
    assert (capacity.hidden_size, capacity.vocabulary) == (128, 272)


def with_another_speaking(made: VllmRunner, *segments: Segment) -> dict[str, Told]:
    """Do segments while session ``other`` answers, and assert that it is not touched."""
    given = [tokens(15, 51)]
    told = {"other": Told()}
    made.submit(segment("other", 0, given, 40))
    while len(told["other"].tokens) < 2:
        hear(made, told)
    for one in segments:
        told[one.session] = Told()
        made.submit(one)
    while any(one.finish is None for one in told.values()):
        hear(made, told)
    assert told["other"].finish is Finish.LENGTH
    assert told["other"].tokens == reference().greedy(given, 40)
    made.drop("other")
    return told


def test_a_session_past_max_model_len_fails_alone(made: VllmRunner) -> None:
    longest = made.capacity.max_length
    finish(made, segment("a", 0, [tokens(longest - 30, 70)], 20))
    told = with_another_speaking(made, segment("a", longest - 11, [tokens(2, 71)], 11))["a"]
    assert told.finish is Finish.FAILED
    assert told.detail == f"the session may come to {longest + 1} positions, but the longest is {longest}"
    assert made.keepable("a", longest) == 0
    assert finish(made, segment("a", 0, [tokens(5, 71)], 2))["a"].finish is Finish.LENGTH


def test_a_session_may_be_as_long_as_said(made: VllmRunner) -> None:
    longest = made.capacity.max_length
    given = [tokens(longest - 4, 72)]
    told = with_another_speaking(made, segment("a", 0, given, 5))["a"]
    assert (told.finish, told.cached) == (Finish.LENGTH, longest)
    told = finish(made, segment("b", 0, [tokens(longest, 73)]))["b"]
    assert (told.finish, told.cached) == (Finish.STOP, longest)


def park(made: VllmRunner, session: str, positions: int) -> None:
    told = finish(made, segment(session, 0, [tokens(positions, positions)]))[session]
    assert (told.finish, told.cached) == (Finish.STOP, positions)


def test_kv_full_of_parked_sessions_is_a_refusal_and_no_deadlock(made: VllmRunner) -> None:
    park(made, "a", 9 * BLOCK)
    park(made, "b", 9 * BLOCK)
    told = with_another_speaking(made, segment("c", 0, [tokens(BLOCK, 74)], 2))["c"]
    assert told.finish is Finish.FAILED
    assert "would come to 2 KV blocks" in told.detail
    assert "0 are free" in told.detail
    # One that is parked cannot grow beyond what is left either.
    told = finish(made, segment("c", 0, [tokens(BLOCK, 75)], 1))["c"]
    assert told.finish is Finish.LENGTH
    assert finish(made, segment("a", 9 * BLOCK, [tokens(BLOCK + 1, 76)]))["a"].finish is Finish.FAILED
    # What a failed session held is free.
    assert finish(made, segment("d", 0, [tokens(9 * BLOCK, 77)]))["d"].finish is Finish.STOP


def test_more_parked_sessions_than_max_num_seqs_are_refused_and_wait_for_nobody(made: VllmRunner) -> None:
    for i in range(MAX_NUM_SEQS):
        park(made, f"s{i}", 10 + i)
    told = finish(made, segment("more", 0, [tokens(5, 78)], 2))["more"]
    assert told.finish is Finish.FAILED
    assert f"{MAX_NUM_SEQS} other sessions hold all" in told.detail
    # Those that are parked go on, and one that starts over takes no other's slot.
    assert finish(made, segment("s0", 10, [tokens(5, 79)], 2))["s0"].finish is Finish.LENGTH
    assert finish(made, segment("s1", 0, [tokens(5, 79)], 2))["s1"].finish is Finish.LENGTH
    made.drop("s2")
    assert finish(made, segment("more", 0, [tokens(5, 78)], 2))["more"].finish is Finish.LENGTH


def test_parked_sessions_whose_last_rows_together_exceed_vllms_cache_of_rows_go_on(made: VllmRunner) -> None:
    """The cache is as long as one session; what was fed of it makes room, though its session is parked."""
    long = {f"s{i}": embeddings(150, 50 + i) for i in range(MAX_NUM_SEQS)}
    assert sum(map(len, long.values())) > MAX_MODEL_LEN
    for session, rows in long.items():
        assert finish(made, segment(session, 0, [tokens(1, 7), rows], 1))[session].finish is Finish.LENGTH
    again = [segment(session, 151, [tokens(2, 8)], 4) for session in long]
    for session, told in finish(made, *again).items():
        assert told.tokens == reference().greedy([tokens(1, 7), long[session], tokens(2, 8)], 4)


def test_all_of_the_kv_can_be_used_at_once(made: VllmRunner) -> None:
    share = KV_POSITIONS // BLOCK // MAX_NUM_SEQS * BLOCK
    given = [tokens(share - 30, 80 + i) for i in range(MAX_NUM_SEQS)]
    told = finish(made, *(segment(f"s{i}", 0, [each], 31) for i, each in enumerate(given)))
    assert {one.finish for one in told.values()} == {Finish.LENGTH}
    assert {one.cached for one in told.values()} == {share}


def test_a_session_that_is_dropped_gives_back_all_it_held(made: VllmRunner) -> None:
    for i in range(12):
        given = tokens(250, 90 + i)
        if i % 2:
            made.submit(segment("a", 0, [given], 60))
        else:
            park(made, "a", 250 + i)
        made.drop("a")
    assert finish(made, *(segment(f"s{i}", 0, [tokens(9 * BLOCK, i)]) for i in range(2)))["s1"].finish is Finish.STOP


def test_a_piece_may_be_longer_than_a_step_and_than_vllm_s_own_chunk(made: VllmRunner) -> None:
    given: list[Piece] = [embeddings(200, 101), tokens(3, 101), embeddings(100, 102)]
    other = segment("b", 0, [embeddings(290, 103), tokens(5, 103)], 3)
    told = finish(made, segment("a", 0, given, 3), other)
    assert told["a"].tokens == reference().greedy(given, 3)
    assert told["b"].tokens == reference().greedy(other.pieces, 3)


def test_what_the_model_cannot_take_fails_its_session_alone(made: VllmRunner) -> None:
    bad: dict[str, tuple[Piece, Sampling]] = {
        "token 272 is given": (Tokens((1, 272)), Sampling(2)),
        "embeddings are": (embeddings(3, 1, width=64), Sampling(2)),
        "not finite": (Embeddings(np.full((2, 128), np.nan, np.float32), b"nan"), Sampling(2)),
        "stop names token": (tokens(2, 1), Sampling(2, stop=frozenset({300}))),
        "max_tokens": (tokens(2, 1), Sampling(0))}
    for detail, (piece, sampling) in bad.items():
        told = finish(made, Segment("a", 0, (piece,), sampling))["a"]
        assert told.finish is Finish.FAILED
        assert detail in told.detail
    assert finish(made, segment("b", 0, [tokens(5, 1)], 2))["b"].finish is Finish.LENGTH


def test_two_lengths_under_one_key_fail_the_session_alone(made: VllmRunner) -> None:
    """vLLM trusts the key too; that it is broken shows only where lengths differ."""
    long, short = embeddings(20, 104), embeddings(10, 105)
    finish(made, segment("a", 0, [long, tokens(2, 104)], 2))
    broken = Embeddings(short.rows, long.key)
    told = with_another_speaking(made, segment("b", 0, [tokens(3, 105), broken], 2))["b"]
    assert told.finish is Finish.FAILED
    assert finish(made, segment("b", 0, [tokens(5, 1)], 2))["b"].finish is Finish.LENGTH


def test_what_vllm_cannot_start_with_is_a_config_error(options: VllmOptions) -> None:
    config, _ = tiny()
    with pytest.raises(ConfigError, match="max_model_len is 5000, but the model goes up to 4096"):
        VllmRunner(config, tiny_weights, options.model_copy(update={"max_model_len": 5000}))
    with pytest.raises(ConfigError, match=r"^the decoder lacks tensors for lm_head\.weight$"):
        VllmRunner(config, without_head, options)


def without_head(device: torch.device) -> Iterator[tuple[str, torch.Tensor]]:
    return ((name, tensor) for name, tensor in tiny_weights(device) if name != "lm_head.weight")
