"""Sessions on vLLM against Hugging Face's Qwen3 and against our own runners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from duologue.engine.runners.base import Embeddings, Finish, Generated, Piece, Runner, Sampling, Segment, Tokens
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.vllm.runner import VllmRunner
from duologue.engine.runners.window import WindowConfig
from tests.engine.runners.kinds import on_numpy, on_torch
from tests.engine.runners.torch_reference import Told, embeddings, reference, segment, tokens
from tests.engine.runners.vllm.driving import finish, hear
from tests.engine.runners.vllm.waiting import wait

STOP = frozenset(range(40))


def close(told: Told, sequence: Sequence[Piece], first: int, last: int) -> None:
    """Assert that the rows told are the reference's final hidden states of positions ``first`` to ``last``."""
    assert sorted(told.rows) == list(range(first, last))
    hidden, _ = reference().states(sequence)
    rows = np.stack([told.rows[i] for i in range(first, last)])
    assert np.abs(rows - hidden[first:last]).max() < 1e-4


def length(pieces: Sequence[Piece]) -> int:
    return sum(map(len, pieces))


INPUTS: list[list[Piece]] = [[tokens(3, 1), tokens(4, 2), tokens(2, 3)], [tokens(3, 4), tokens(5, 5)],
                             [tokens(2, 6), tokens(3, 7)]]


@pytest.mark.parametrize("terminator_put_back", [False, True])
def test_a_prompt_is_all_inputs_so_far_and_their_outputs_without_the_last_token(
        made: VllmRunner, terminator_put_back: bool) -> None:
    prompt: list[Piece] = []
    answer: list[int] = []
    cached = 0
    for inputs in INPUTS:
        dropped = [Tokens((answer[-1],))] if terminator_put_back and answer else []
        prompt += [*dropped, *inputs]
        answer = finish(made, segment("a", cached, [*dropped, *inputs], 8, stop=STOP))["a"].tokens
        assert answer == reference().greedy(prompt, 8, STOP)
        prompt.append(Tokens(tuple(answer[:-1])))
        cached = made.keepable("a", length(prompt))
        assert cached == length(prompt)


def units(count: int, seed: int) -> list[tuple[Piece, ...]]:
    """Inputs of a session: a prefix, then audio between tokens, as in the duplex format."""
    return [(tokens(20, seed),), *((Tokens((256,)), embeddings(10, 100 * seed + i)) for i in range(count))]


def test_every_hidden_state_of_a_session_is_the_reference_s_and_has_its_position(made: VllmRunner) -> None:
    sequence: list[Piece] = []
    cached, last = 0, None
    for new in units(4, seed=1):
        pieces: list[Piece] = [*(() if last is None else (Tokens((last,)),)), *new]
        told = finish(made, segment("a", cached, pieces, 6, "all"))["a"]
        before, cached = cached, told.cached
        sequence += [*pieces, Tokens(tuple(told.tokens[:-1]))]
        assert cached == length(sequence)
        close(told, sequence, before, cached)
        last = told.tokens[-1]


def test_hidden_states_of_generated_tokens_are_of_those_that_were_fed(made: VllmRunner) -> None:
    given: list[Piece] = [tokens(12, 8), embeddings(9, 8)]
    told = finish(made, segment("a", 0, given, 7, "generated"))["a"]
    close(told, [*given, Tokens(tuple(told.tokens[:-1]))], 21, 27)
    told = finish(made, segment("a", 27, [Tokens((told.tokens[-1],))], 1, "generated"))["a"]
    assert (told.rows, told.cached) == ({}, 28)


def test_a_token_and_its_hidden_state_come_before_the_segment_is_over(made: VllmRunner) -> None:
    made.submit(segment("a", 0, [tokens(10, 9)], 40, "all"))
    said: list[Generated] = []
    while not said or said[-1].finish is None:
        wait(made)
        said += made.step()
    assert sum(bool(one.tokens) for one in said) > 5
    assert sum(one.rows is not None for one in said) > 5


def test_a_prefill_alone_generates_nothing_and_is_gone_on_from(made: VllmRunner) -> None:
    first, second = embeddings(150, 50), tokens(5, 50)
    told = finish(made, segment("a", 0, [first], hidden="all"))["a"]
    assert (told.tokens, told.finish, told.cached) == ([], Finish.STOP, 150)
    close(told, [first], 0, 150)
    told = finish(made, segment("a", 150, [second], 6))["a"]
    assert told.tokens == reference().greedy([first, second], 6)


def test_sessions_are_batched_and_do_not_touch_each_other(made: VllmRunner) -> None:
    given: dict[str, list[Piece]] = {
        name: [tokens(20 + 30 * i, 51 + i), embeddings(5 + i, 51 + i)] for i, name in enumerate("abcd")}
    told = finish(made, *(segment(name, 0, pieces, 10 + 5 * i, "all")
                          for i, (name, pieces) in enumerate(given.items())))
    for i, (name, pieces) in enumerate(given.items()):
        assert told[name].tokens == reference().greedy(pieces, 10 + 5 * i)
        sequence: list[Piece] = [*pieces, Tokens(tuple(told[name].tokens[:-1]))]
        close(told[name], sequence, 0, length(sequence))


def test_only_all_that_is_cached_can_be_kept(made: VllmRunner) -> None:
    finish(made, segment("a", 0, [tokens(20, 11)], 5))
    assert [made.keepable("a", positions) for positions in (0, 23, 24, 25)] == [0, 0, 24, 24]
    assert made.keepable("b", 24) == 0
    with pytest.raises(ValueError, match="cannot be kept"):
        made.submit(segment("a", 23, [tokens(1, 1)], 5))


def test_a_session_has_one_segment_at_a_time(made: VllmRunner) -> None:
    made.submit(segment("a", 0, [tokens(20, 12)], 5))
    with pytest.raises(ValueError, match="open segment"):
        made.submit(segment("a", 0, [tokens(20, 12)], 5))


def test_a_session_that_is_cut_starts_over_from_what_is_left(made: VllmRunner) -> None:
    before, audio = tokens(70, 50), embeddings(40, 50)
    finish(made, segment("a", 0, [before, audio, tokens(30, 14)], 8))
    left: list[Piece] = [before, Embeddings(audio.rows, audio.key), tokens(6, 52)]
    told = finish(made, segment("a", 0, left, 8))["a"]
    assert told.tokens == reference().greedy(left, 8)


def test_embeddings_of_another_key_are_not_found_in_the_prefix_cache(made: VllmRunner) -> None:
    for seed in (52, 53):
        given: list[Piece] = [embeddings(64, seed), tokens(3, 16)]
        assert finish(made, segment(f"s{seed}", 0, given, 6))[f"s{seed}"].tokens == reference().greedy(given, 6)


def test_an_answer_can_be_interrupted_and_the_session_goes_on(made: VllmRunner) -> None:
    given: list[Piece] = [tokens(15, 51), embeddings(20, 51)]
    told: dict[str, Told] = {"a": Told(), "b": Told()}
    made.submit(segment("a", 0, given, 200))
    made.submit(segment("b", 0, given, 30))
    while len(told["a"].tokens) < 3:
        hear(made, told)
    made.interrupt("a")
    made.interrupt("a")
    while told["a"].finish is None or told["b"].finish is None:
        hear(made, told)
    said = told["a"].tokens
    assert told["a"].finish is Finish.INTERRUPTED
    assert 3 <= len(said) < 200
    assert said == reference().greedy(given, len(said))
    assert told["b"].tokens == reference().greedy(given, 30)
    keep = made.keepable("a", length(given) + len(said))
    assert keep == told["a"].cached == 0
    heard: list[Piece] = [*given, Tokens(tuple(said[:2])), tokens(4, 52)]
    assert finish(made, segment("a", keep, heard, 6))["a"].tokens == reference().greedy(heard, 6)


def test_nothing_is_said_of_a_session_that_was_dropped(made: VllmRunner) -> None:
    made.submit(segment("a", 0, [tokens(15, 20)], 200))
    wait(made)
    made.drop("a")
    made.drop("a")
    told = finish(made, segment("b", 0, [tokens(15, 21)], 20))
    assert list(told) == ["b"]
    assert made.keepable("a", 1000) == 0


class Recorded:
    """A session as a call makes it: units, a rollback, slides of the window; its answers are kept."""

    PREFIX = tokens(20, 30)
    BUDGET = 8

    def __init__(self, runner: Runner) -> None:
        self.answers: list[tuple[int, ...]] = []
        self._journal: list[tuple[tuple[Piece, ...], tuple[int, ...]]] = []
        self._open(runner)

    def _open(self, runner: Runner) -> None:
        self._runner = runner
        self._sessions = Sessions(runner, Grammar(terminators=True, tail=(257,), unsaid=frozenset(range(256, 260))),
                                  WindowConfig(rule="text", low=120, high=220, text_tokens=24))
        self._sessions.open("call", [self.PREFIX])

    def move(self, runner: Runner) -> None:
        """Go on with another runner, from the journal."""
        self._sessions.close("call")
        self._open(runner)
        for pieces, answer in self._journal:
            self._sessions.record("call", pieces, answer, self.BUDGET)

    def unit(self, seed: int) -> None:
        pieces = (Tokens((256,)), embeddings(10, seed))
        self._sessions.append("call", pieces)
        self._sessions.generate("call", Sampling(self.BUDGET, stop=STOP, forbidden=(257,), at_budget=259))
        answer: list[int] = []
        finished = None
        while finished is None:
            if not self._sessions.ready:
                wait(self._runner)
            for output in self._sessions.step():
                answer += output.tokens
                finished = output.finish
        assert finished in (Finish.STOP, Finish.LENGTH)
        self.answers.append(tuple(answer))
        self._journal.append((pieces, tuple(answer)))

    def run(self, then: Runner | None = None) -> list[tuple[int, ...]]:
        """The answers of a whole session, of which the second half is done by ``then``."""
        for seed in range(6):
            self.unit(seed)
        self._sessions.rollback("call", self._sessions.mark("call") - 2)
        del self._journal[-2:]
        for seed in range(6, 14):
            self.unit(seed)
        if then is not None:
            self.move(then)
        for seed in range(14, 24):
            self.unit(seed)
        assert length(self._sessions.sequence("call")) <= 220 < 22 * 12, "the window has slid"
        self._sessions.close("call")
        return self.answers


def test_all_runners_give_a_recorded_session_the_same_tokens(made: VllmRunner) -> None:
    """Also after a rollback, where it is opened anew on another replica, and after slides of the window."""
    expected = Recorded(on_torch()).run()
    assert len(set(expected)) > 12
    assert Recorded(on_numpy()).run() == expected
    assert Recorded(made).run() == expected
    assert Recorded(made).run(then=on_torch()) == expected
    assert Recorded(on_torch()).run(then=made) == expected
    assert Recorded(made).run(then=on_numpy()) == expected
    assert Recorded(on_numpy()).run(then=made) == expected


def test_a_segment_must_be_asked_for_with_a_position(made: VllmRunner) -> None:
    finish(made, segment("a", 0, [tokens(20, 40)], 5))
    told = finish(made, Segment("a", 24, (), Sampling(5)))["a"]
    assert (told.finish, told.detail) == (Finish.FAILED, "the segment has no position to compute")
