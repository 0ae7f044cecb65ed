"""Our own runners against Hugging Face's Qwen3 and Llama: tokens and hidden states of sessions of many segments."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engine.runners.base import Finish, Piece, Runner, Tokens
from tests.engine.runners.kinds import Kind
from tests.engine.runners.torch_reference import (
    Reference,
    Told,
    embeddings,
    finish,
    reference,
    segment,
    small,
    tokens,
)


def close(told: Told, pieces: list[Piece], first: int, last: int) -> None:
    """Assert that the rows told are the reference's states of positions ``first`` to ``last``."""
    assert sorted(told.rows) == list(range(first, last))
    hidden, _ = reference().states(pieces)
    np.testing.assert_allclose(np.stack([told.rows[i] for i in range(first, last)]), hidden[first:last],
                               atol=2e-4, rtol=1e-3)


def units(count: int, seed: int) -> list[tuple[Piece, ...]]:
    """Inputs of a session: a prefix, then audio between tokens, as in the duplex format."""
    return [(tokens(20, seed),), *((Tokens((256,)), embeddings(10, 100 * seed + i)) for i in range(count))]


def session(made: Runner, name: str, inputs: list[tuple[Piece, ...]]) -> tuple[list[list[int]], list[Piece]]:
    """Run a session unit by unit, putting each segment's last token back; its tokens, and its whole sequence."""
    sequence: list[Piece] = []
    answers: list[list[int]] = []
    cached = 0
    for new in inputs:
        pieces = (*(Tokens((answers[-1][-1],)) for _ in answers[-1:]), *new)
        told = finish(made, segment(name, cached, pieces, 6, "all", stop=range(40)))[name]
        before, cached = cached, told.cached
        sequence += [*pieces, Tokens(tuple(told.tokens[:-1]))]
        assert cached == sum(len(piece) for piece in sequence)
        close(told, sequence, before, cached)
        answers.append(told.tokens)
    return answers, sequence


def test_a_session_of_tokens_and_embeddings_is_one_sequence(kind: Kind) -> None:
    inputs = units(6, seed=2)
    answers, _ = session(kind(), "a", inputs)
    expected: list[list[int]] = []
    sequence: list[Piece] = []
    for new in inputs:
        sequence += new
        expected.append(reference().greedy(sequence, 6, frozenset(range(40))))
        sequence.append(Tokens(tuple(expected[-1])))
    assert answers == expected
    assert {len(answer) for answer in answers} >= {6}
    assert min(len(answer) for answer in answers) < 6, "a stop token was among them"


def test_a_long_answer_goes_on_as_the_reference_does(kind: Kind) -> None:
    given = [tokens(30, 5)]
    told = finish(kind(), segment("a", 0, given, 60))["a"]
    assert told.tokens == reference().greedy(given, 60)
    assert len(set(told.tokens)) > 20, "random weights that repeat themselves would show little"


def test_what_is_cut_is_forgotten(kind: Kind) -> None:
    made = kind(block=16)
    first, audio, other = tokens(25, 2), embeddings(30, 2), tokens(9, 3)
    finish(made, segment("a", 0, [first, audio], 8))
    for keep in (40, 33, 32, 31, 25, 1):
        assert made.keepable("a", keep) == keep
        told = finish(made, segment("a", keep, [other], 8, "all"))["a"]
        kept: list[Piece] = [first, type(audio)(audio.rows[:max(keep - 25, 0)], b"")] if keep >= 25 \
            else [Tokens(first.ids[:keep])]
        assert told.tokens == reference().greedy([*kept, other], 8), keep
        close(told, [*kept, other, Tokens(tuple(told.tokens[:-1]))], keep, keep + 9 + 7)
        assert made.keepable("a", 10**6) == keep + 9 + 7
        finish(made, segment("a", 0, [first, audio], 8))


def test_a_session_opened_again_elsewhere_goes_on_the_same(kind: Kind) -> None:
    inputs = units(4, seed=3)
    here, there = kind(), kind(prefill_chunk=13, block=32)
    _, sequence = session(here, "a", inputs[:-1])
    cached = here.keepable("a", 10**6)
    on = finish(here, segment("a", cached, inputs[-1], 8))["a"]
    again = finish(there, segment("b", 0, [*sequence, *inputs[-1]], 8))["b"]
    assert on.tokens == again.tokens
    here.drop("a")
    assert here.keepable("a", 10**6) == 0
    assert finish(here, segment("a", 0, [*sequence, *inputs[-1]], 8))["a"].tokens == on.tokens


def test_many_sessions_together_say_what_each_says_alone(kind: Kind) -> None:
    inputs: dict[str, list[Piece]] = {f"s{i}": [tokens(3 + 17 * i, i), embeddings(10, i), Tokens((256,))]
                                      for i in range(9)}
    segments = [segment(name, 0, pieces, 4 + len(name) + i, "all")
                for i, (name, pieces) in enumerate(inputs.items())]
    together = finish(kind(prefill_chunk=50), *segments)
    for one in segments:
        alone = finish(kind(), one)[one.session]
        assert together[one.session].tokens == alone.tokens
        assert one.sampling is not None
        assert alone.tokens == reference().greedy(one.pieces, one.sampling.max_tokens)
        assert together[one.session].rows.keys() == alone.rows.keys()
        for position, row in alone.rows.items():
            np.testing.assert_allclose(together[one.session].rows[position], row, atol=2e-4, rtol=1e-3)


@pytest.mark.parametrize("chunk", [1, 7, 16, 1000])
def test_a_prefill_in_chunks_is_the_whole_prefill(kind: Kind, chunk: int) -> None:
    pieces: list[Piece] = [tokens(21, 1), embeddings(22, 1), tokens(1, 2), embeddings(30, 3)]
    told = finish(kind(prefill_chunk=chunk), segment("a", 0, pieces, None, "all"))["a"]
    assert told.finish is Finish.STOP
    assert told.cached == 74
    close(told, pieces, 0, 74)


def test_hidden_states_are_of_the_positions_asked_for(kind: Kind) -> None:
    pieces: list[Piece] = [tokens(12, 9)]
    none = finish(kind(), segment("a", 0, pieces, 5))["a"]
    generated = finish(kind(), segment("a", 0, pieces, 5, "generated"))["a"]
    assert none.rows == {}
    close(generated, [*pieces, Tokens(tuple(generated.tokens[:-1]))], 12, 16)


def test_a_head_tied_to_the_embedding_is_used(kind: Kind) -> None:
    config, tensors = small(tie_word_embeddings=True)
    assert "lm_head.weight" not in tensors
    given = tokens(20, 1, config.vocab_size)
    told = finish(kind((config, tensors), max_length=64), segment("a", 0, [given], 10))["a"]
    assert told.tokens == Reference(config, tensors).greedy([given], 10)


def test_a_llama_is_a_decoder_without_norms_on_query_and_key_and_turns_by_its_own_theta(
        kind: Kind) -> None:
    config, tensors = small(model_type="llama", rope_theta=1e4, num_key_value_heads=4, rms_norm_eps=1e-5)
    assert not any("q_norm" in name or "k_norm" in name for name in tensors)
    given: list[Piece] = [tokens(20, 2, config.vocab_size), embeddings(5, 3, config.hidden_size)]
    held = Reference(config, tensors)
    made = kind((config, tensors), max_length=64)
    told = finish(made, segment("a", 0, given, 12, "all"))["a"]
    assert told.tokens == held.greedy(given, 12)
    hidden, _ = held.states([*given, Tokens(tuple(told.tokens[:-1]))])
    np.testing.assert_allclose(np.stack([told.rows[i] for i in range(36)]), hidden, atol=2e-4, rtol=1e-3)
