from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.runners.base import Piece, Tokens
from duologue.engine.runners.log import Grammar, Log, joined
from tests.engine.runners.fake_runner import embeddings, states

PREFIX = (Tokens((1, 2)),)
FAMILY = Grammar(terminators=True, tail=(9,), unsaid=frozenset({7, 8}), memory=((5,), (6,)))


def flat(log: Log) -> list[int]:
    (tokens,) = log.pieces()
    assert isinstance(tokens, Tokens)
    return list(tokens.ids)


def test_a_segments_last_sampled_token_is_no_part_of_the_next_prompt() -> None:
    # [A1,B1,C1], [A2,B2], [A3,B3]: all inputs so far, plus outputs without each segment's last sampled token.
    log = Log((), Grammar())
    log.append([Tokens((11, 12, 13))])
    log.answer((101, 102, 103))
    log.append([Tokens((21, 22))])
    assert flat(log) == [11, 12, 13, 101, 102, 21, 22]
    log.answer((201,))
    log.append([Tokens((31, 32))])
    assert flat(log) == [11, 12, 13, 101, 102, 21, 22, 31, 32]


def test_a_family_that_wants_its_terminators_back_gets_them_and_its_tail() -> None:
    log = Log(PREFIX, FAMILY)
    log.append([Tokens((3,))])
    assert flat(log) == [1, 2, 3]
    log.answer((7, 40, 8))
    assert flat(log) == [1, 2, 3, 7, 40, 8, 9]
    log.append([Tokens((4,))])
    log.answer(())
    assert flat(log)[7:] == [4, 9]


def test_a_revised_answer_says_before_which_position_nothing_changed() -> None:
    log = Log(PREFIX, FAMILY)
    for answer in [(7, 40, 41, 8), (7, 42, 8)]:
        log.append([Tokens((3,))])
        log.answer(answer)
    assert log.revise(0, (7, 40, 41, 8)) == log.length == len(flat(log))
    assert log.revise(0, (7, 40, 8)) == 5
    assert flat(log) == [1, 2, 3, 7, 40, 8, 9, 3, 7, 42, 8, 9]
    assert log.revise(1, (7, 42, 43, 8)) == 10
    assert log.revise(1, (7,)) == 9
    assert flat(log) == [1, 2, 3, 7, 40, 8, 9, 3, 7, 9]


def test_another_prefix_leaves_everything_behind_it() -> None:
    log = Log(PREFIX, FAMILY)
    log.append([Tokens((3,))])
    log.answer((7, 40, 8))
    assert log.begin_with((Tokens((1, 2)),)) == log.length == 7
    assert log.begin_with((Tokens((20, 21, 22)),)) == 0
    assert flat(log) == [20, 21, 22, 3, 7, 40, 8, 9]
    assert (log.prefix, log.length) == (3, 8)
    assert log.revise(0, (7, 8)) == 5


def test_a_rollback_takes_away_what_came_since_the_mark() -> None:
    log = Log(PREFIX, FAMILY)
    log.append([Tokens((3,))])
    log.answer((7, 40, 8))
    mark = log.next
    log.append([embeddings(3)])
    assert log.rollback(mark) == 7 == log.length
    assert log.rollback(0) == 2
    with pytest.raises(ValueError, match="no mark 1"):
        log.rollback(1)


def test_what_is_forgotten_leaves_its_text_behind_the_prefix() -> None:
    log = Log(PREFIX, FAMILY)
    for answer in [(7, 40, 41, 8), (8,), (7, 42, 8), (7, 43, 8)]:
        log.append([Tokens((3,))])
        log.answer(answer)
    assert log.forget(3, 2) == 2
    assert flat(log) == [1, 2, 5, 41, 42, 6, 3, 7, 43, 8, 9]
    # Numbers stay what they were, and what was forgotten cannot be changed any more.
    assert log.revise(3, (7, 44, 8)) == 8
    assert log.revise(0, (8,)) == log.length
    assert log.rollback(2) == 2
    assert flat(log) == [1, 2, 5, 41, 6]
    log.append([Tokens((3,))])
    assert (log.next, flat(log)) == (3, [1, 2, 5, 41, 6, 3])
    assert log.forget(1, 0) == 2
    assert flat(log) == [1, 2]


def test_a_sequence_is_not_cut_within_embeddings() -> None:
    log = Log(PREFIX, FAMILY)
    log.append([Tokens((3,)), embeddings(4), Tokens((4, 5))])
    assert [log.cuttable(position) for position in range(10)] == [0, 1, 2, 3, 3, 3, 3, 7, 8, 9]
    assert [len(piece) for piece in log.pieces(1)] == [2, 4, 2]
    assert log.pieces(8) == (Tokens((5,)),)
    assert log.pieces(9) == ()
    with pytest.raises(ValueError, match="within embeddings"):
        log.pieces(5)


def test_tokens_in_a_row_are_one_piece() -> None:
    rows = embeddings(1)
    assert joined([Tokens((1,)), Tokens(()), Tokens((2, 3)), rows, rows, Tokens((4,))]) == (
        Tokens((1, 2, 3)), rows, rows, Tokens((4,)))


@given(st.booleans(), st.lists(st.one_of(
    st.tuples(st.just("append"), st.lists(st.integers(0, 3), max_size=3)),
    st.tuples(st.just("answer"), st.lists(st.integers(0, 9), max_size=4)),
    st.tuples(st.just("revise"), st.tuples(st.integers(0, 5), st.lists(st.integers(0, 9), max_size=4))),
    st.tuples(st.just("rollback"), st.integers(0, 9)),
    st.tuples(st.just("forget"), st.tuples(st.integers(0, 3), st.integers(0, 4)))), max_size=15))
def test_nothing_changes_before_the_position_that_is_told(terminators: bool, actions: list[tuple[str, object]]) -> None:
    log = Log(PREFIX, Grammar(terminators, (9,), frozenset({7, 8}), ((5,), (6,))))
    for name, argument in actions:
        before = states(log.pieces())
        unchanged = len(before)
        match name, argument:
            case "append", [*rows]:
                log.append([piece for row in rows for piece in _pieces(int(str(row)))])
            case "answer", [*tokens] if log.next > log.first:
                entry = log.next - 1
                unchanged = log.revise(entry, [int(str(token)) for token in tokens])
            case "revise", (int(back), [*tokens]) if log.first <= log.next - 1 - back:
                unchanged = log.revise(log.next - 1 - back, [int(str(token)) for token in tokens])
            case "rollback", int(mark) if mark <= log.next:
                unchanged = log.rollback(mark)
            case "forget", (int(count), int(text)) if count <= log.next - log.first:
                unchanged = log.forget(count, text)
        after = states(log.pieces())
        assert log.length == len(after)
        assert after[:unchanged] == before[:unchanged]
        assert after[:2] == states(PREFIX)


def _pieces(kind: int) -> list[Piece]:
    return [embeddings(kind, kind)] if kind else [Tokens((3,))]
