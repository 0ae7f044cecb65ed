from __future__ import annotations

import pytest

from duologue.engine.runners.base import Finish, Piece, Runner, Sampling, Tokens
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.sessions import Output, Sessions
from duologue.engine.runners.window import WindowConfig
from tests.engine.runners.fake_runner import Cut, FakeRunner, answer, capacity, embeddings, states

CUTS: list[Cut] = ["anywhere", "block", "nowhere"]
PREFIX = (Tokens((1, 2, 3)),)
UNIT = Grammar(terminators=True, tail=(60,), unsaid=frozenset({61, 62}), memory=((50,), (51,)))
SIX = Sampling(max_tokens=6, stop=frozenset({61, 62}))


@pytest.fixture(params=CUTS)
def runner(request: pytest.FixtureRequest) -> FakeRunner:
    return FakeRunner(capacity(), request.param)


def piece(number: int) -> list[Piece]:
    return [Tokens((40,)), embeddings(3, number)]


def drain(sessions: Sessions) -> dict[str, list[Output]]:
    outputs: dict[str, list[Output]] = {}
    while sessions.ready:
        for output in sessions.step():
            outputs.setdefault(output.session, []).append(output)
    return outputs


def tokens(outputs: list[Output]) -> tuple[int, ...]:
    return tuple(token for output in outputs for token in output.tokens)


def unit(sessions: Sessions, session: str, number: int, sampling: Sampling = SIX) -> tuple[int, ...]:
    """One unit in, its answer out, which is that of a fresh session with the same sequence."""
    sessions.append(session, piece(number))
    sessions.generate(session, sampling)
    expected = answer(sessions.sequence(session), sampling, 64)
    assert tokens(drain(sessions)[session]) == expected
    return expected


def test_every_sampled_token_comes_out_and_the_terminator_is_put_back(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    first = unit(sessions, "a", 1)
    second = unit(sessions, "a", 2)
    assert states(sessions.sequence("a")) == states(
        [*PREFIX, *piece(1), Tokens((*first, 60)), *piece(2), Tokens((*second, 60))])


def test_a_unit_costs_only_what_is_new_as_long_as_nothing_was_changed() -> None:
    runner = FakeRunner(capacity(), "nowhere")
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    for number in range(50):
        before = runner.prefilled
        unit(sessions, "a", number)
        # The terminator and the tail of the unit before, four positions of this one.
        assert runner.prefilled - before == (6 if number else 7)


def test_a_rollback_is_as_if_what_came_after_the_mark_had_never_been(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    unit(sessions, "a", 1)
    mark, then = sessions.mark("a"), states(sessions.sequence("a"))
    first = unit(sessions, "a", 2)
    unit(sessions, "a", 3)
    sessions.rollback("a", mark)
    assert states(sessions.sequence("a")) == then
    assert unit(sessions, "a", 2) == first


def test_an_answer_can_be_asked_for_again_where_nothing_new_was_given(runner: FakeRunner) -> None:
    # The KV holds all of the sequence, and yet the last position has to be computed for the next token.
    sessions = Sessions(runner, Grammar())
    sessions.open("a", PREFIX)
    sessions.append("a", [])
    sessions.generate("a", SIX)
    assert tokens(drain(sessions)["a"]) == answer(PREFIX, SIX, 64)
    sessions.rollback("a", 0)
    sessions.append("a", [])
    sessions.generate("a", SIX)
    assert tokens(drain(sessions)["a"]) == answer(PREFIX, SIX, 64)


def test_a_session_put_together_again_elsewhere_goes_on_the_same(runner: FakeRunner) -> None:
    here, there = Sessions(runner, UNIT), Sessions(FakeRunner(capacity(), "block"), UNIT)
    here.open("a", PREFIX)
    answers = [unit(here, "a", number) for number in range(5)]
    there.open("a", PREFIX)
    for number in range(5):
        there.record("a", piece(number), answers[number], 6)
    assert unit(there, "a", 5) == unit(here, "a", 5)


def test_a_session_put_together_again_slides_where_it_slid(runner: FakeRunner) -> None:
    window = WindowConfig(rule="text", high=90, low=60, text_tokens=5)
    here, there = Sessions(runner, UNIT, window), Sessions(FakeRunner(capacity(), "block"), UNIT, window)
    here.open("a", PREFIX)
    answers = []
    for number in range(40):
        answers.append(unit(here, "a", number))
        assert sum(map(len, here.sequence("a"))) <= 90
        assert states(here.sequence("a"))[:3] == states(PREFIX)
    there.open("a", PREFIX)
    for number in range(40):
        there.record("a", piece(number), answers[number], 6)
    assert states(there.sequence("a")) == states(here.sequence("a"))


def test_an_interruption_at_any_moment_leaves_a_session_that_goes_on(runner: FakeRunner) -> None:
    long = Sampling(max_tokens=8)
    for steps in range(10):
        sessions = Sessions(runner, UNIT)
        sessions.open("a", PREFIX)
        unit(sessions, "a", 1)
        sessions.append("a", piece(2))
        whole = answer(sessions.sequence("a"), long, 64)
        sessions.generate("a", long)
        outputs = [output for _ in range(steps) for output in sessions.step()]
        sessions.interrupt("a")
        outputs += drain(sessions).get("a", [])
        assert [output.finish for output in outputs if output.finish] == [
            Finish.INTERRUPTED if steps < 8 else Finish.LENGTH]
        assert tokens(outputs) == whole[:steps]
        unit(sessions, "a", 3)
        sessions.close("a")


def test_an_interruption_is_only_of_a_segment(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    sessions.interrupt("a")
    assert not sessions.ready
    unit(sessions, "a", 1)


def test_answers_of_past_units_can_be_changed(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    for number in range(4):
        unit(sessions, "a", number)
    sessions.revise("a", 2, (5, 61))
    sessions.revise("a", 3, (62,))
    unit(sessions, "a", 4)
    assert states(sessions.sequence("a"))[:-1] != states(PREFIX)


def test_an_answer_that_was_begun_is_gone_on_with(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    unit(sessions, "a", 1)
    sessions.append("a", piece(2))
    sequence = sessions.sequence("a")
    sessions.generate("a", SIX, "generated", begun=(7, 8))
    outputs = drain(sessions)["a"]
    rest = answer([*sequence, Tokens((7, 8))], SIX, 64)
    assert tokens(outputs) == rest
    after = states([*sequence, Tokens((7, 8, *rest, 60))])
    assert states(sessions.sequence("a")) == after
    unit(sessions, "a", 3)


def test_hidden_states_are_told_by_the_token_they_are_of(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    unit(sessions, "a", 1)
    sessions.append("a", piece(2))
    before = states(sessions.sequence("a"))
    sessions.generate("a", SIX, "generated")
    outputs = drain(sessions)["a"]
    made = tokens(outputs)
    after = states([Tokens(made)], before[-1])
    rows = {output.first_row + i: float(row[0]) for output in outputs if output.rows is not None
            for i, row in enumerate(output.rows)}
    # Of the last token there is none: it was not fed.
    assert rows == {i: after[i] % 1000 for i in range(len(made) - 1)}


def test_a_session_that_outgrows_the_runner_fails_alone(runner: FakeRunner) -> None:
    # One past max_model_len ends a stock vLLM engine for everybody.
    runner.capacity = capacity(max_length=64)
    sessions = Sessions(runner, UNIT)
    for session in "ab":
        sessions.open(session, PREFIX)
    failed = False
    for number in range(20):
        sessions.append("a", piece(number))
        sessions.generate("a", SIX)
        (*_, last) = drain(sessions)["a"]
        if last.finish is Finish.FAILED:
            assert last.detail.startswith("the session would grow to")
            failed = True
            break
    assert failed
    with pytest.raises(KeyError):
        sessions.append("a", piece(0))
    assert list(runner.held) == []
    unit(sessions, "b", 1)


def test_a_session_that_fails_in_the_runner_fails_alone(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    for session in "ab":
        sessions.open(session, PREFIX)
        sessions.append(session, piece(1))
        sessions.generate(session, SIX)
    runner.failing.add("a")
    outputs = drain(sessions)
    assert [(output.finish, output.detail) for output in outputs["a"]] == [(Finish.FAILED, "told to")]
    assert outputs["b"][-1].finish in (Finish.STOP, Finish.LENGTH)
    sessions.open("a", PREFIX)
    unit(sessions, "a", 1)


def test_idle_sessions_give_way_and_are_computed_anew_when_they_go_on(runner: FakeRunner) -> None:
    runner.capacity = capacity(positions=64, block=16, max_sessions=2)
    sessions = Sessions(runner, UNIT)
    for session in "abcde":
        sessions.open(session, (*PREFIX, Tokens((ord(session) % 60,))))
    for number in range(3):
        for session in "abcde":
            unit(sessions, session, number)
            assert len(runner.held) <= 2


def test_who_waits_is_told_why_and_can_be_interrupted_there(runner: FakeRunner) -> None:
    runner.capacity = capacity(max_sessions=1)
    sessions = Sessions(runner, UNIT)
    for session in "ab":
        sessions.open(session, PREFIX)
        sessions.append(session, piece(1))
        sessions.generate(session, Sampling(max_tokens=9))
    sessions.step()
    assert sessions.busy("b")
    assert sessions.why_waiting("b") == "all 1 session slots are running"
    sessions.interrupt("b")
    outputs = drain(sessions)
    assert [(output.tokens, output.finish) for output in outputs["b"]] == [((), Finish.INTERRUPTED)]
    unit(sessions, "b", 2)


def test_a_log_is_not_changed_under_a_segment(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    with pytest.raises(ValueError, match="open already"):
        sessions.open("a", PREFIX)
    sessions.append("a", piece(1))
    sessions.generate("a", SIX)
    for change in (lambda: sessions.append("a", piece(2)), lambda: sessions.rollback("a", 0),
                   lambda: sessions.revise("a", 0, ()), lambda: sessions.generate("a", SIX)):
        with pytest.raises(ValueError, match="not over"):
            change()


def test_nothing_is_left_of_a_session_that_was_closed(runner: FakeRunner) -> None:
    sessions = Sessions(runner, UNIT)
    sessions.open("a", PREFIX)
    sessions.append("a", piece(1))
    sessions.generate("a", SIX)
    sessions.step()
    sessions.close("a")
    sessions.close("a")
    assert (runner.held, sessions.ready) == ({}, False)
    sessions.open("b", PREFIX)
    sessions.append("b", [embeddings(2000)])
    sessions.generate("b", SIX)
    sessions.close("b")
    assert drain(sessions) == {}


def test_a_window_must_fit_the_runner() -> None:
    limited: Runner = FakeRunner(capacity(max_length=64))
    with pytest.raises(ValueError, match="the runner holds 64"):
        Sessions(limited, UNIT, WindowConfig(high=100))
    assert Sessions(limited, UNIT, WindowConfig(high=50)).longest == 50
    assert Sessions(limited, UNIT).longest == 64
