"""Tools, and replies that are asked for, in a session: what is given, what survives, what is refused."""

from __future__ import annotations

import json

import pytest

from duologue.engine import (
    Brief,
    CallerText,
    CallerWords,
    Instructions,
    Item,
    ReplyText,
    Tool,
    ToolCall,
    ToolCalled,
    ToolResult,
    Tools,
)
from duologue.engine import calls as calls_module
from duologue.engine.brief import MAX_TOOLS
from duologue.engine.calls import Calls
from duologue.engine.messages import Open
from duologue.engine.state import MAX_INJECTED, Overrun
from duologue.engine.wire import FromStage
from duologue.metrics import TOOL_CALLS
from tests.engine.house import Guest, House
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline
from tests.engine.simulation import PLACEMENTS, Simulation, say

TOOL = Tool("tool", "does something", '{"type": "object"}')
ASKED = Brief(auto_respond=False)


@pytest.fixture(params=PLACEMENTS, ids=["-".join(p) for p in PLACEMENTS])
def placement(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    chosen: tuple[str, str, str] = request.param
    return chosen


def calls(sim: Simulation) -> list[str]:
    return [event.call for event in sim.events if isinstance(event, ToolCall)]


def texts(sim: Simulation) -> list[str]:
    return [event.text for event in sim.events if isinstance(event, ReplyText)]


def recalled(sim: Simulation) -> str:
    """What the thinker remembers."""
    say(sim, Order.RECALL)
    sim.settle()
    return [event.text for event in sim.events if isinstance(event, CallerWords)][-1]


def give(sim: Simulation, item: Item) -> None:
    sim.state.inject(item)
    sim.collect()


def ask(sim: Simulation, instructions: str = "so") -> None:
    sim.state.respond(instructions)
    sim.collect()


def test_a_call_reaches_the_agent_and_its_result_the_thinker(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement))
    say(sim, Order.LISTEN, Order.CALL)
    sim.settle()
    assert [event for event in sim.events if isinstance(event, ToolCall)] == [
        ToolCall(sim.state.session, "call_1", "tool", "{}")]
    assert sim.state.history() == (ToolCalled("call_1", "tool", "{}", None, 1),)
    give(sim, ToolResult("call_1", "42"))
    assert recalled(sim) == "ToolCalled:tool=42"
    assert sim.state.history()[0] == ToolCalled("call_1", "tool", "{}", "42", 1)


def test_a_call_is_made_once_though_its_unit_is_answered_twice(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement))
    say(sim, Order.CALL)
    sim.deliver_to_worker("a")
    while not any(isinstance(m, FromStage) and isinstance(m.message, ToolCall) for m in sim.to_hub["a"]):
        sim.deliver_to_worker("a")
        sim.step("a")
    while not sim.state.history():
        sim.deliver_to_hub("a")
    # The call has come, the decision beside it is lost.
    sim.to_hub["a"].clear()
    sim.kill("a")
    sim.settle()
    assert calls(sim) == ["call_0"]
    assert sim.state.decided == 1
    assert sim.state.drops["message", "duplicate"] == 1


def test_a_rebuilt_thinker_knows_the_calls_that_are_open_and_the_results_that_came(
        placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement))
    say(sim, Order.CALL, Order.CALL)
    sim.settle()
    give(sim, ToolResult("call_0", "42"))
    sim.kill("a")
    sim.settle()
    assert recalled(sim) == "ToolCalled:tool=42 | ToolCalled:tool=None"
    give(sim, ToolResult("call_1", "43"))
    assert recalled(sim) == "ToolCalled:tool=42 | ToolCalled:tool=43"
    assert calls(sim) == ["call_0", "call_1"]


def test_an_interruption_takes_no_call_back(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement))
    say(sim, Order.SPEAK)
    sim.settle()
    say(sim, Order.CALL)
    sim.work()
    sim.state.interrupt(0, WORD_SAMPLES)
    sim.collect()
    sim.settle()
    assert calls(sim) == ["call_1"]
    give(sim, ToolResult("call_1", "42"))
    assert "tool=42" in recalled(sim)


@pytest.mark.parametrize(("call", "sentence"), [("call_7", "no tool call 'call_7'"), ("call_0", "has had its result")])
def test_a_result_that_nobody_waits_for_is_refused_with_a_sentence(call: str, sentence: str) -> None:
    sim = Simulation(pipeline("a", "b", "b"))
    say(sim, Order.CALL)
    sim.settle()
    give(sim, ToolResult("call_0", "42"))
    with pytest.raises(ValueError, match=sentence):
        sim.state.inject(ToolResult(call, "43"))
    sim.collect()
    assert recalled(sim) == "ToolCalled:tool=42"


def test_the_oldest_calls_are_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_module, "CALLS_KEPT", 2)
    made = Calls()
    assert [made.ask(name) for name in ("a", "b", "b", "c")] == [True, True, False, True]
    made.answer("b")
    with pytest.raises(ValueError, match="no tool call 'a'"):
        made.answer("a")


def test_a_stage_is_rebuilt_with_the_instructions_and_tools_of_now(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement), Brief("be kind", "kal", (), auto_respond=False))
    give(sim, Instructions("be brief"))
    give(sim, Tools((TOOL,)))
    sim.kill("a")
    sim.restart("a")
    (opening,) = [m.message for m in sim.to_worker["a"] if m.stage == "thinker" and isinstance(m.message, Open)]
    assert (opening.instructions, opening.voice, opening.tools, opening.auto_respond) == (
        "be brief", "kal", (TOOL,), False)


@pytest.mark.parametrize(("tools", "sentence"), [
    ((Tool(""),), "has no name"),
    ((TOOL, TOOL), "two tools are named 'tool'"),
    ((Tool("x", parameters="nonsense"),), "parameters of the tool 'x' are not a JSON object"),
    ((Tool("x", parameters="[]"),), "parameters of the tool 'x' are not a JSON object"),
    ((Tool("x", parameters="[" * 100_000),), "parameters of the tool 'x' are not a JSON object"),
    (tuple(Tool(f"t{n}") for n in range(MAX_TOOLS + 1)), f"may have {MAX_TOOLS}")])
async def test_tools_that_cannot_be_called_are_refused_with_a_sentence(tools: tuple[Tool, ...], sentence: str) -> None:
    house = House(pipeline("a", "b", "b"))
    with pytest.raises(ValueError, match=sentence):
        house.engine.open(tools=tools)
    assert house.engine.load().sessions == 0
    guest = Guest(house.engine.open(tools=[TOOL]))
    with pytest.raises(ValueError, match=sentence):
        guest.session.inject(Tools(tools))
    guest.say(Order.CALL)
    house.work()
    assert [event.call for event in guest.read() if isinstance(event, ToolCall)] == ["call_0"]


async def test_calls_are_counted_as_they_reach_the_agent() -> None:
    house = House(pipeline("a", "b", "b"))
    guest = Guest(house.engine.open(tools=[TOOL]))
    before = TOOL_CALLS._value.get()
    guest.say(Order.CALL, Order.LISTEN, Order.CALL)
    house.work()
    await guest.session.close()
    async for _ in guest.session.outputs():
        pass
    assert TOOL_CALLS._value.get() == before + 2


def test_a_reply_comes_when_it_is_asked_for(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    say(sim, Order.LISTEN)
    sim.settle()
    ask(sim, "certainly")
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.settle()
    assert texts(sim) == ["certainly "]


@pytest.mark.parametrize(("before", "after"), [(0, 0), (2, 0), (2, 2)])
def test_a_reply_that_was_asked_for_comes_though_the_thinker_dies(
        placement: tuple[str, str, str], before: int, after: int) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    say(sim, Order.HEAR, *[Order.LISTEN] * before)
    sim.settle()
    say(sim, *[Order.HEAR] * before)
    ask(sim)
    say(sim, *[Order.HEAR] * after)
    sim.kill("a")
    sim.settle()
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.settle()
    assert texts(sim) == ["so "]


@pytest.mark.parametrize("order", [Order.FINISH, Order.CALL])
def test_what_has_been_answered_is_not_asked_again_of_a_rebuilt_thinker(
        placement: tuple[str, str, str], order: Order) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    ask(sim)
    say(sim, order)
    sim.settle()
    sim.kill("a")
    sim.settle()
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.settle()
    assert "so " not in texts(sim)


def test_a_request_made_after_a_reply_had_begun_is_not_answered_by_it(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    say(sim, Order.FINISH)
    # The reply has begun, and the hub does not know it yet.
    while sim.deliver_to_worker("a") or sim.step("a"):
        pass
    ask(sim)
    while sim.deliver_to_hub("a"):
        pass
    sim.kill("a")
    sim.settle()
    say(sim, Order.LISTEN)
    sim.settle()
    assert texts(sim) == ["w0 ", "so "]


def test_another_request_takes_the_place_of_one_that_waits() -> None:
    sim = Simulation(pipeline("a", "b", "b"), ASKED)
    ask(sim, "one")
    ask(sim, "two")
    say(sim, Order.LISTEN, Order.LISTEN)
    sim.settle()
    assert texts(sim) == ["two "]


def test_an_interruption_takes_a_request_back_for_good(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    ask(sim)
    sim.state.interrupt(-1, 0)
    sim.collect()
    sim.kill("a")
    sim.settle()
    say(sim, Order.LISTEN)
    sim.settle()
    assert texts(sim) == []


def test_cutting_a_reply_that_is_over_leaves_the_request_for_the_next_one(placement: tuple[str, str, str]) -> None:
    sim = Simulation(pipeline(*placement), ASKED)
    say(sim, Order.SPEAK, Order.FINISH)
    sim.settle()
    ask(sim)
    assert sim.state.interrupt(0, WORD_SAMPLES) == "w0 "
    sim.collect()
    say(sim, Order.LISTEN)
    sim.settle()
    assert texts(sim)[-1] == "so "


def test_a_session_that_replies_by_itself_cannot_be_asked() -> None:
    sim = Simulation(pipeline("a", "b", "b"))
    with pytest.raises(ValueError, match="auto_respond=False"):
        sim.state.respond()


def test_items_and_requests_beyond_what_may_wait_are_not_taken() -> None:
    sim = Simulation(pipeline("a", "b", "b"), ASKED)
    say(sim, Order.CALL)
    sim.settle()
    for n in range(MAX_INJECTED):
        give(sim, CallerText(str(n)))
    with pytest.raises(Overrun):
        sim.state.inject(ToolResult("call_0", "42"))
    with pytest.raises(Overrun):
        sim.state.respond("no")
    say(sim, Order.LISTEN)
    sim.settle()
    assert texts(sim) == []
    give(sim, ToolResult("call_0", "42"))
    assert "tool=42" in recalled(sim)


def test_what_is_given_to_a_session_that_is_over_is_dropped() -> None:
    sim = Simulation(pipeline("a", "b", "b"), ASKED)
    sim.state.close()
    sim.collect()
    sim.state.respond()
    sim.state.inject(ToolResult("call_0", json.dumps(1)))
    assert sim.state.take_sends() == []
