"""Faults that others had in serving this model, each a rule here."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from duologue.engine.messages import AppendUnit, SessionFailed, Unit
from duologue.engine.models.minicpmo.format import MAX_UNIT_TOKENS
from duologue.engine.runners.base import Embeddings, Runner, Segment, Tokens
from duologue.metrics import UNANSWERED
from tests.engine.models.minicpmo.stage import Session, T, create, sound

LISTENS = {"listen_top_k": 400}
"""A model that listens wherever it may."""
UNIT_POSITIONS = 13
"""Of a unit in which it listens: ``<unit>``, ten rows, ``<|listen|>`` and ``</unit>``, which come with the next."""


def submitted(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> list[Segment]:
    """What the runner is given from now on."""
    given: list[Segment] = []
    plain = runner.submit

    def submit(segment: Segment) -> None:
        given.append(segment)
        plain(segment)

    monkeypatch.setattr(runner, "submit", submit)
    return given


def test_a_model_that_listens_for_ever_is_noticed(caplog: pytest.LogCaptureFixture) -> None:
    # vllm-omni#5526.
    before = UNANSWERED._value.get()
    session = Session(create(LISTENS, floor={"unanswered_units": 6}))
    with caplog.at_level(logging.WARNING):
        for speech in (0.9, *[0.0] * 9):
            session.give(speech=speech)
        session.settle()
    assert session.spoken == []
    assert UNANSWERED._value.get() - before == 1
    assert "only listened for 6 units" in caplog.text


def test_a_session_that_outgrows_the_model_fails_alone_and_with_a_window_not_at_all() -> None:
    # vllm-omni#7277, #6528, #6626: it killed the engine for everybody.
    torch = {"max_length": 128}
    stage = create(LISTENS, window=None, torch=torch)
    long, short = Session(stage, "long"), Session(stage, "short")
    long.say(12)
    (failed,) = (each for each in long.out if isinstance(each, SessionFailed))
    assert (failed.session, "128 are the most one can have" in failed.detail) == ("long", True)
    short.say()
    assert len(short.decisions) == 1
    slides = Session(create(LISTENS, torch=torch))
    slides.say(24)
    assert len(slides.decisions) == 24


def test_the_budget_counts_the_terminator_that_comes_with_the_next_unit() -> None:
    # vllm-omni counted 12 positions a unit, and the 13th overflowed.
    prefix = sum(len(piece) for piece in Session(create()).pieces)
    for spare, fits in ((0, True), (-1, False)):
        longest = prefix + 3 * UNIT_POSITIONS + 11 + MAX_UNIT_TOKENS + spare
        session = Session(create(LISTENS, window=None, torch={"max_length": longest, "block": 1}))
        session.say()
        assert sum(len(piece) for piece in session.pieces) == prefix + UNIT_POSITIONS
        session.say(2)
        assert len(session.decisions) == 3
        session.say()
        assert any(isinstance(each, SessionFailed) for each in session.out) is not fits


def test_a_unit_costs_the_same_however_long_the_session_has_been(monkeypatch: pytest.MonkeyPatch) -> None:
    # vllm#52471: what a unit cost grew with all units before it.
    stage = create(LISTENS)
    given = submitted(stage._runner, monkeypatch)
    session = Session(stage)
    session.say(40)
    assert [sum(map(len, segment.pieces)) for segment in given[1:]] == [UNIT_POSITIONS] * 39
    assert [segment.keep for segment in given[1:]] == [given[1].keep + UNIT_POSITIONS * i for i in range(39)]


def test_what_waits_is_answered_unit_by_unit_with_its_own_audio() -> None:
    # vllm-omni#7251: what was left over in a queue drifted away from what it belonged to.
    late, live = (Session(create(seed=0), "s") for _ in range(2))
    for _ in range(8):
        late.give()
    late.settle()
    live.say(8)
    assert [each.unit for each in late.decisions] == list(range(8))
    assert late.decided == live.decided
    rows = [[piece.key for piece in session.pieces if isinstance(piece, Embeddings)] for session in (late, live)]
    assert rows[0] == rows[1]
    assert len(set(rows[0])) == 8


def test_what_was_said_in_units_before_is_less_likely_to_be_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    # vllm-omni#6090: a model that derails says one token for ever. The penalty against that is the session's.
    def longest_run(penalty: float) -> int:
        session = Session(create({"repetition_penalty": penalty}, seed=5))
        session.say(12)
        tokens = [id for each in session.decisions for id in each.tokens if id < 256]
        runs = np.diff(np.flatnonzero(np.diff([-1, *tokens, -1])))
        return int(runs.max())

    stage = create(seed=0)
    given = submitted(stage._runner, monkeypatch)
    session = Session(stage)
    session.say(6)
    told: list[int] = []
    for segment, decision in zip(given, session.decisions, strict=True):
        assert segment.sampling is not None
        assert list(segment.sampling.recent) == told
        told += [T.listen if id == T.tts_bos else id for id in decision.tokens if id != T.chunk_eos]
    assert longest_run(1.5) < longest_run(1.0)


def test_not_half_a_unit_nor_a_padded_row_enters_the_sequence() -> None:
    session = Session(create(seed=0))
    session.say(2)
    session.stage.receive(AppendUnit("s", 0, Unit(2, np.zeros(15_999, np.int16), 0.0)))
    session.give(sound(3))
    session.settle()
    assert [each.unit for each in session.decisions] == [0, 1]
    assert isinstance(session.out[-1], SessionFailed)
    other = Session(create(seed=0))
    other.say(3)
    assert [len(piece) for piece in other.pieces if isinstance(piece, Embeddings)] == [10, 10, 10]
    assert all(len(piece) for piece in other.pieces if isinstance(piece, Tokens))
