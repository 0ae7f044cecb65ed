"""A session that was given nothing yet may begin again with another brief."""

from __future__ import annotations

import pytest

from duologue.engine import Brief, CallerText, Decision
from duologue.engine.messages import Open
from duologue.engine.pipeline import Graph
from duologue.engine.state import SessionState
from tests.engine.scripted import Order, pipeline, unit
from tests.engine.simulation import Simulation, say


def test_every_stage_is_opened_again_with_the_new_brief() -> None:
    config = pipeline("a", "a", "a")
    state = SessionState("s", config, Graph(config))
    first = {send.stage: send.serial for send in state.take_sends() if isinstance(send.message, Open)}
    state.reopen(Brief("be brief", "rms", auto_respond=False))
    again = {send.stage: send for send in state.take_sends() if isinstance(send.message, Open)}
    assert again.keys() == first.keys()
    for stage, send in again.items():
        assert isinstance(send.message, Open)
        assert send.serial > first[stage]
        assert (send.message.instructions, send.message.voice, send.message.auto_respond) == ("be brief", "rms", False)
    assert state.brief.instructions == "be brief"


def test_units_go_on_after_it_as_if_it_had_been_so_from_the_start() -> None:
    sim = Simulation(pipeline("a", "a", "a"))
    sim.settle()
    sim.state.reopen(Brief("be brief"))
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.settle()
    assert [event.unit for event in sim.events if isinstance(event, Decision)] == [0, 1]


def test_a_session_that_was_given_something_stays_as_it_is() -> None:
    config = pipeline("a", "a", "a")
    for spoken in (True, False):
        state = SessionState("s", config, Graph(config))
        if spoken:
            state.append(unit(0, Order.LISTEN))
        else:
            state.inject(CallerText("hello"))
        with pytest.raises(ValueError, match="keeps its voice"):
            state.reopen(Brief("other"))
        assert state.brief == Brief()
