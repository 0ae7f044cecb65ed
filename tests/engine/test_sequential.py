"""``async_chunk: false``: a stage begins with a reply when the one before it has ended it."""

from __future__ import annotations

import pytest

from duologue.engine import ReplyAudio, TurnStatus
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline
from tests.engine.simulation import PLACEMENTS, Simulation, ends, say, spoken


@pytest.fixture(params=PLACEMENTS, ids="-".join)
def sim(request: pytest.FixtureRequest) -> Simulation:
    return Simulation(pipeline(*request.param, async_chunk=False))


def test_a_reply_is_heard_when_its_text_is_whole(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    assert not any(isinstance(event, ReplyAudio) for event in sim.events)
    say(sim, Order.FINISH)
    sim.settle()
    assert spoken(sim, 0) == [0, 1, 2]
    assert [end.status for end in ends(sim)] == [TurnStatus.DONE]


def test_a_reply_longer_than_its_edges_does_not_get_stuck(sim: Simulation) -> None:
    say(sim, *[Order.BURST] * 10, Order.FINISH)
    sim.settle()
    assert spoken(sim, 0) == list(range(301))


def test_an_interrupted_reply_leaves_nothing_behind(sim: Simulation) -> None:
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    say(sim, Order.BURST)
    sim.settle()
    sim.state.interrupt(1, 0)
    sim.collect()
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    last = ends(sim)[-1]
    assert last.status is TurnStatus.DONE
    assert spoken(sim, last.turn) == [0, 1]


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_process_killed_while_a_reply_is_gathered_costs_no_word(sim: Simulation, victim: int) -> None:
    say(sim, Order.SPEAK, Order.SPEAK)
    sim.settle()
    sim.kill(sim.graph.nodes[sim.graph.stages[victim]].process)
    sim.settle()
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    assert spoken(sim, 0) == [0, 1, 2, 3]
    (end,) = ends(sim)
    assert end.status is TurnStatus.DONE


def test_a_reply_can_be_cut_while_its_audio_is_gathered(sim: Simulation) -> None:
    say(sim, Order.BURST, Order.FINISH)
    while not any(isinstance(event, ReplyAudio) for event in sim.events):
        sim.work_once(*sim.processes)
        sim.pop()
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    sim.collect()
    sim.settle()
    (end,) = ends(sim)
    assert (end.status, end.text) == (TurnStatus.INTERRUPTED, "w0 ")
