"""A whole session over the duplex thinker, in random orders: real hub, real workers, scripted voice.

Beside the session's own rules it is held to one more: a thinker opened anew from the journal has the same sequence, and
so gives the same answer, as the one that lived through it all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine import CallerText, Decision, PipelineConfig, ReplyAudio, ReplyText, TurnEnd, TurnStatus, Unit
from duologue.engine.messages import AppendUnit, Open
from duologue.engine.models.duplex.format import Answer
from duologue.engine.runners.base import Tokens
from tests.engine.models.duplex.fake_thinker import TOKENIZER, TOKENS, UNIT_SAMPLES, FakeThinker, create
from tests.engine.runners.fake_runner import states
from tests.engine.scripted import WORD_SAMPLES, pipeline
from tests.engine.simulation import Simulation

PLACEMENTS = [("a", "a", "a"), ("a", "b", "b")]


def config(*processes: str, journal_units: int = 750, **options: Any) -> PipelineConfig:
    made = pipeline(*processes, journal_units=journal_units)
    thinker = made.stages[0].model_copy(update={"model": "tests.engine.models.duplex.fake_thinker", "options": options})
    return made.model_copy(update={"stages": (thinker, *made.stages[1:])})


def unit(index: int) -> Unit:
    return Unit(index, np.random.default_rng(index).normal(0, 3000, UNIT_SAMPLES).astype(np.int16), speech=0.0)


def say(sim: Simulation, count: int = 1) -> None:
    for _ in range(count):
        sim.state.append(unit(sim.state.units))
    sim.collect()


def thinker(sim: Simulation) -> FakeThinker:
    stage = sim.workers["a"].stages["thinker"]
    assert isinstance(stage, FakeThinker)
    return stage


def texts(sim: Simulation, turn: int) -> str:
    return "".join(event.text for event in sim.events if isinstance(event, ReplyText) and event.fence.turn == turn)


def ends(sim: Simulation) -> list[TurnEnd]:
    return [event for event in sim.events if isinstance(event, TurnEnd)]


def decisions(sim: Simulation) -> list[Decision]:
    return [event for event in sim.events if isinstance(event, Decision)]


def opened_anew(sim: Simulation, options: dict[str, Any]) -> tuple[FakeThinker, list[Decision]]:
    """A thinker of its own, given what the hub would give one that is rebuilt now, and one unit more."""
    state, made = sim.state, create(options)
    opening = state._journal.opening(Open("anew", state.epoch, state._turns.last + 1, state.units,
                                          decided=state.decided))
    made.receive(opening)
    for each in state._journal.units:
        made.receive(AppendUnit("anew", state.epoch, each))
    made.receive(AppendUnit("anew", state.epoch, unit(state.units)))
    out = [output for output in drain(made) if isinstance(output, Decision)]
    return made, out


def drain(stage: FakeThinker) -> Iterable[object]:
    out: list[object] = []
    while stage.ready:
        out += stage.step()
    return out


def check_against_anew(sim: Simulation, options: dict[str, Any]) -> None:
    made, decided = opened_anew(sim, options)
    before = sim.state.units
    say(sim)
    sim.settle()
    assert [(each.unit, each.tokens) for each in decided] == [
        (each.unit, each.tokens) for each in decisions(sim) if each.unit == before]
    name = sim.state.session
    assert states(made.sessions.sequence("anew")) == states(thinker(sim).sessions.sequence(name))


OPTIONS: list[dict[str, Any]] = [
    {}, {"cut": "block"}, {"cut": "nowhere"},
    {"window": {"high": 200, "low": 150}}, {"window": {"rule": "text", "high": 200, "low": 150, "text_tokens": 20}}]

ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["say", "say and settle"]), st.integers(1, 4)),
    st.tuples(st.sampled_from(["inject", "kill", "restart"]), st.integers(0, 1)),
    st.tuples(st.sampled_from(["interrupt", "interrupt"]), st.integers(0, 8 * WORD_SAMPLES)),
    st.tuples(st.sampled_from(["to_worker", "step", "to_hub"]), st.integers(0, 12)),
    st.tuples(st.sampled_from(["work", "pop"]), st.integers(1, 20)),
)


@settings(max_examples=250, deadline=None, derandomize=True)
@given(st.sampled_from(PLACEMENTS), st.sampled_from(OPTIONS), st.lists(ACTIONS, min_size=8, max_size=40))
def test_whatever_the_order_of_things_a_thinker_opened_anew_is_the_same(
        placement: tuple[str, ...], options: dict[str, Any], actions: list[tuple[str, int]]) -> None:
    sim = Simulation(config(*placement, **options))
    heard: dict[int, str] = {}
    for kind, argument in actions:
        name = sim.processes[argument % len(sim.processes)]
        match kind:
            case "say":
                say(sim, argument)
            case "inject":
                sim.state.inject(CallerText("<|speak|>" * argument))
                sim.collect()
            case "interrupt":
                turns = [e.fence.turn for e in sim.events if isinstance(e, ReplyText | ReplyAudio)]
                if turns:
                    text = sim.state.interrupt(turns[-1], argument)
                    assert heard.setdefault(turns[-1], text) == text
                    sim.collect()
            case "to_worker" | "step" | "to_hub":
                for _ in range(argument + 1):
                    if name not in sim.down:
                        {"to_worker": sim.deliver_to_worker, "step": sim.step, "to_hub": sim.deliver_to_hub}[kind](name)
            case "kill":
                sim.kill(name)
            case "restart":
                sim.restart(name)
            case "work":
                for _ in range(argument):
                    sim.work_once(*(each for each in sim.processes if each not in sim.down))
            case "pop":
                for _ in range(argument):
                    sim.pop()
            case "say and settle":
                for _ in range(argument):
                    say(sim)
                    sim.settle()
    sim.settle()
    assert [event.unit for event in decisions(sim)] == list(range(sim.state.units))
    for decision in decisions(sim):
        read = Answer(TOKENS)
        read.take(decision.tokens)
        assert read.well_formed == decision.tokens
    check_replies(sim, heard)
    assert not [end for end in ends(sim) if end.status is TurnStatus.FAILED]
    check_against_anew(sim, options)


def check_replies(sim: Simulation, heard: dict[int, str]) -> None:
    open_turns = {turn.number for turn in sim.state._turns.open}
    for turn in {event.fence.turn for event in sim.events if isinstance(event, ReplyText)}:
        pieces = [event for event in sim.events if isinstance(event, ReplyText) and event.fence.turn == turn]
        at = 0
        for piece in pieces:
            assert piece.start == at
            at += len(piece.text)
        (*_, last) = pieces
        over = [end for end in ends(sim) if end.turn == turn]
        assert len(over) == (0 if turn in open_turns else 1)
        for end in over:
            assert texts(sim, turn).startswith(end.text)
            if end.status is TurnStatus.DONE:
                assert last.last
                assert end.text == texts(sim, turn)
            if end.status is TurnStatus.INTERRUPTED and turn in heard:
                assert end.text == heard[turn]


@pytest.fixture
def sim() -> Simulation:
    return Simulation(config("a", "b", "b"))


def test_a_session_longer_than_its_window_and_its_journal_goes_on_the_same(sim: Simulation) -> None:
    options = {"window": {"rule": "text", "high": 160, "low": 120, "text_tokens": 20}}
    sim = Simulation(config("a", "b", "b", journal_units=30, **options))
    for _ in range(10):
        say(sim, 20)
        sim.settle()
    assert len(sim.state._journal.units) == 30
    check_against_anew(sim, options)


def test_a_journal_shorter_than_the_window_still_opens_a_session(sim: Simulation) -> None:
    sim = Simulation(config("a", "b", "b", journal_units=5))
    say(sim, 40)
    sim.settle()
    made, decided = opened_anew(sim, {})
    assert [each.unit for each in decided] == [40]
    again, same = opened_anew(sim, {})
    assert states(made.sessions.sequence("anew")) == states(again.sessions.sequence("anew"))
    assert [each.tokens for each in same] == [each.tokens for each in decided]


def speaking(sim: Simulation, words: int = 1) -> int:
    """Let units pass until a reply is open that has so many words; its number."""
    for _ in range(500):
        say(sim)
        sim.settle()
        if sim.state._turns.open and not sim.state._turns.open[-1].text_whole:
            turn = sim.state._turns.open[-1].number
            if len(re.findall(r"\w+", texts(sim, turn))) >= words:
                return turn
    raise AssertionError("it never spoke")


def test_a_reply_goes_on_after_its_thinker_was_killed(sim: Simulation) -> None:
    twin = Simulation(config("a", "b", "b"))
    turn = speaking(sim)
    assert speaking(twin) == turn
    sim.kill("a")
    for each in (sim, twin):
        say(each, 30)
        each.settle()
    assert texts(sim, turn) == texts(twin, turn)
    assert [(end.turn, end.status, end.text) for end in ends(sim)] == [
        (end.turn, end.status, end.text) for end in ends(twin)]
    assert [each.tokens for each in decisions(sim)] == [each.tokens for each in decisions(twin)]


def test_a_reply_goes_on_though_its_last_words_came_and_their_decision_did_not(sim: Simulation) -> None:
    for _ in range(50):
        turn = speaking(sim)
        before = texts(sim, turn)
        say(sim)
        while sim.deliver_to_worker("a") or sim.step("a"):
            pass
        while sim.to_hub["a"] and texts(sim, turn) == before:
            sim.deliver_to_hub("a")
            while sim.pop():
                pass
        if texts(sim, turn) != before:
            break
        sim.settle()
    said = texts(sim, turn)
    assert len(said) > len(before)
    assert sim.state.decided == sim.state.units - 1
    sim.to_hub["a"].clear()
    sim.kill("a")
    sim.settle()
    say(sim, 30)
    sim.settle()
    assert texts(sim, turn).startswith(said)
    assert next(end.status for end in ends(sim) if end.turn == turn) is TurnStatus.DONE
    check_against_anew(sim, {})


def words(sim: Simulation) -> list[int]:
    """The text in the session's sequence."""
    pieces = thinker(sim).sessions.sequence(sim.state.session)
    special = TOKENIZER.get_added_tokens_decoder()
    return [id for piece in pieces if isinstance(piece, Tokens) for id in piece.ids if id not in special]


def test_what_was_not_heard_of_a_cut_reply_is_not_remembered(sim: Simulation) -> None:
    turn = speaking(sim, words=3)
    before = words(sim)
    heard = sim.state.interrupt(turn, WORD_SAMPLES)
    sim.collect()
    sim.settle()
    after = words(sim)
    assert 0 < len(heard) < len(texts(sim, turn))
    assert after == before[:len(after)]
    assert len(after) < len(before)
    assert TOKENIZER.decode(after).rstrip("�").endswith(heard.rstrip("�"))
    check_against_anew(sim, {})
