"""The session's rules, searched over random orders of everything that can happen."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine import (
    Brief,
    Decision,
    ReplyAudio,
    ReplyText,
    ToolCall,
    ToolCalled,
    ToolResult,
    TurnEnd,
    TurnStatus,
)
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline
from tests.engine.simulation import PLACEMENTS, Simulation, ends, say, spoken

ACTIONS = st.one_of(
    st.tuples(st.just("say"), st.sampled_from([Order.LISTEN, Order.SPEAK, Order.SPEAK, Order.FINISH,
                                               Order.HEAR, Order.HOLD_TALKER, Order.BURST, Order.CALL])),
    st.tuples(st.just("fail"), st.sampled_from([Order.FAIL_ONCE, Order.RAISE_ONCE, Order.FAIL_TALKER])),
    st.tuples(st.just("interrupt"), st.integers(0, 4 * WORD_SAMPLES)),
    st.tuples(st.sampled_from(["respond", "result"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["to_worker", "doorbells", "step", "to_hub", "kill", "restart"]), st.integers(0, 2)),
    st.tuples(st.sampled_from(["work", "work", "pop", "pop"]), st.integers(1, 8)),
)


class Agent:
    """What the agent gives a session and reads of it."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.orders: list[Order] = []
        self.asked = 0
        self.heard: dict[int, str] = {}
        self.results: dict[str, str] = {}
        self.epochs: list[int] = []
        """The epoch in which each event was read."""

    def read(self) -> bool:
        if not self.sim.pop():
            return False
        self.epochs.append(self.sim.state.epoch)
        return True

    def settle(self) -> None:
        self.sim.settle()
        self.epochs.extend([self.sim.state.epoch] * (len(self.sim.events) - len(self.epochs)))

    def say(self, order: Order) -> None:
        if not self.sim.state.over:
            self.orders.append(order)
        say(self.sim, order)

    def interrupt(self, samples: int) -> None:
        turns = [e.fence.turn for e in self.sim.events if isinstance(e, ReplyText | ReplyAudio)]
        if turns:
            text = self.sim.state.interrupt(turns[-1], samples)
            assert self.heard.setdefault(turns[-1], text) == text
            self.sim.collect()

    def ask(self) -> str:
        """Ask for a reply, that will be one word."""
        self.asked += 1
        self.sim.state.respond(f"asked{self.asked}")
        self.sim.collect()
        return f"asked{self.asked} "

    @property
    def calls(self) -> list[str]:
        return [event.call for event in self.sim.events if isinstance(event, ToolCall)]

    def answer(self, which: int) -> None:
        """Give the result of one of the calls that are open."""
        for call in [call for call in self.calls if call not in self.results][which:which + 1]:
            if not self.sim.state.over:
                self.results[call] = f"result {len(self.results)}"
                self.sim.state.inject(ToolResult(call, self.results[call]))
                self.sim.collect()


@settings(max_examples=700, deadline=None, derandomize=True)
@given(placement=st.sampled_from(PLACEMENTS), overlap=st.booleans(), auto=st.booleans(), dies=st.booleans(),
       actions=st.lists(ACTIONS, max_size=60))
def test_whatever_the_order_of_things_the_rules_hold(
        placement: tuple[str, str, str], overlap: bool, auto: bool, dies: bool,
        actions: list[tuple[str, int]]) -> None:
    sim = Simulation(pipeline(*placement, async_chunk=overlap), Brief(auto_respond=auto))
    agent = Agent(sim)
    for kind, argument in actions:
        name = sim.processes[argument % len(sim.processes)]
        match kind:
            case "say" | "fail":
                agent.say(Order(argument))
            case "interrupt":
                agent.interrupt(argument)
            case "respond":
                if not auto:
                    agent.ask()
            case "result":
                agent.answer(argument)
            case "to_worker":
                sim.deliver_to_worker(name) if name not in sim.down else None
            case "doorbells":
                sim.answer_doorbells(name) if name not in sim.down else None
            case "step":
                sim.step(name) if name not in sim.down else None
            case "to_hub":
                sim.deliver_to_hub(name) if name not in sim.down else None
            case "kill":
                sim.kill(name)
            case "restart":
                sim.restart(name)
            case "work":
                for _ in range(argument):
                    sim.work_once(*(name for name in sim.processes if name not in sim.down))
            case "pop":
                for _ in range(argument):
                    agent.read()
    agent.settle()
    if not auto:
        check_that_a_wanted_reply_comes(agent, dies)
    decided = [event.unit for event in sim.events if isinstance(event, Decision)]
    assert decided == list(range(len(decided)))
    assert sim.state.over or len(decided) == sim.state.units
    sim.state.close()
    while agent.read():
        pass
    check_replies(sim, agent.heard)
    check_calls(agent, len(decided))
    for event, epoch in zip(sim.events, agent.epochs, strict=True):
        if isinstance(event, ReplyText | ReplyAudio):
            assert event.fence.epoch == epoch
        elif isinstance(event, Decision | TurnEnd):
            assert event.epoch == epoch


def check_that_a_wanted_reply_comes(agent: Agent, dies: bool) -> None:
    """A reply that is asked for comes, once, though the thinker dies before it could begin."""
    sim = agent.sim
    agent.say(Order.FINISH)
    agent.settle()
    if sim.state.over:
        return
    text = agent.ask()
    if dies:
        sim.kill("a")
    agent.settle()
    agent.say(Order.LISTEN)
    agent.say(Order.LISTEN)
    agent.settle()
    texts = [event.text for event in sim.events if isinstance(event, ReplyText)]
    assert texts[-1] == text
    for number in range(agent.asked):
        assert texts.count(f"asked{number + 1} ") <= 1


def check_calls(agent: Agent, decided: int) -> None:
    """Each call that was made in answer to a unit came once, and is remembered as open or with its result."""
    made = [f"call_{unit}" for unit, order in enumerate(agent.orders[:decided]) if order is Order.CALL]
    assert agent.calls[:len(made)] == made
    assert len(agent.calls) <= len(made) + 1, "one that was made before the session ended, without its decision"
    remembered = {item.call: item.output for item in agent.sim.state.history() if isinstance(item, ToolCalled)}
    assert remembered == {call: agent.results.get(call) for call in agent.calls}


def check_replies(sim: Simulation, heard: dict[int, str]) -> None:
    """Each reply that surfaced is in order and has one end, after which there is nothing of it."""
    replies: dict[int, list[ReplyText | ReplyAudio | TurnEnd]] = {}
    for event in sim.events:
        if isinstance(event, ReplyText | ReplyAudio):
            replies.setdefault(event.fence.turn, []).append(event)
        elif isinstance(event, TurnEnd):
            replies.setdefault(event.turn, []).append(event)
    assert len(ends(sim)) == len(replies)
    for turn, events in replies.items():
        assert [isinstance(event, TurnEnd) for event in events] == [False] * (len(events) - 1) + [True]
        end = events[-1]
        assert isinstance(end, TurnEnd)
        texts = [event for event in events if isinstance(event, ReplyText)]
        starts = list(itertools.accumulate((len(text.text) for text in texts), initial=0))
        assert [text.start for text in texts] == starts[:-1]
        said = "".join(text.text for text in texts)
        assert said.startswith(end.text)
        words = spoken(sim, turn)
        plan = [int(word[1:]) if word[1:].isdigit() else -1 for word in said.split()]
        assert words == plan[:len(words)]
        if end.status is TurnStatus.DONE:
            assert words == plan
            assert end.text == said
        if end.status is TurnStatus.INTERRUPTED and turn in heard:
            assert end.text == heard[turn]
