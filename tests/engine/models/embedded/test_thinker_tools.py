"""A session of the thinker with tools, and in turn mode: what it calls, when it tells a result, when it speaks."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine import (
    AgentSaid,
    CallerSaid,
    CallerText,
    Choice,
    HistoryItem,
    InlineSession,
    Instructions,
    PipelineConfig,
    Tool,
    ToolCall,
    ToolCalled,
    ToolResult,
    Tools,
    Unit,
)
from duologue.engine.brief import Brief
from duologue.engine.messages import ReplyText
from duologue.engine.models.embedded.dialogue.calling import Request
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import typed
from duologue.engine.models.embedded.lexicon import Lexicon
from tests.engine.models.embedded.scripted_ear import SILENCE, Session, growing, untrusted

WEATHER = Tool("get_weather", "The weather of a city", json.dumps(
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}))
CLOCK = Tool("get_time")
RAIN = '{"sky": "rain"}'
BUSY = "One moment, I am still waiting for the answer to the last question."
UNHEARD = "I have not heard anything."


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon(grammar().words, 10_000)


def arguments(call: ToolCall) -> object:
    return json.loads(call.arguments)


def test_a_spoken_question_for_a_tool_calls_it_and_is_not_answered(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER,))
    session.say(growing("what is the weather in paris", untrusted))
    session.go(40)
    (call,) = session.calls
    assert (call.name, arguments(call)) == ("get_weather", {"city": "paris"})
    assert session.texts == {}
    assert {decision.choice for decision in session.decisions} == {Choice.LISTEN}


@pytest.mark.parametrize(("words", "understood", "calls"), [
    ("whether in paris", "weather in paris", 1), ("turn on the line", "turn on the light", 1),
    ("the line is long", "the line is long", 0), ("turn around", "turn around", 0), ("rather", "rather", 0)])
def test_what_sounds_like_a_tools_name_is_taken_for_it_where_nothing_else_was_understood(
        lexicon: Lexicon, words: str, understood: str, calls: int) -> None:
    session = Session(lexicon, tools=(WEATHER, Tool("turn_on_lights")))
    session.say(growing(words, untrusted))
    session.go(2)
    assert len(session.calls) == calls
    assert session.words[-1].text == understood


def test_a_result_is_told_as_soon_as_nobody_speaks(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER, CLOCK))
    session.mind.inject(CallerText("the weather in paris"))
    session.go(3)
    session.ear.script = growing("tell me a story")
    session.go(2)
    session.mind.inject(ToolResult(session.calls[0].call, RAIN))
    session.go(5)
    assert session.texts == {}
    session.go(20)
    assert session.texts[0] == "The sky is rain."
    assert "Once" in session.texts[1] or len(session.texts[1]) > 40


def test_what_a_tool_must_know_is_asked_back_for(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER,))
    session.say(growing("how is the weather", untrusted))
    session.go(10)
    assert session.texts == {0: "Which city?"}
    session.go(30)
    session.say(growing("in new york", untrusted))
    session.go(2)
    assert [arguments(call) for call in session.calls] == [{"city": "new york"}]


def test_one_call_is_under_way_at_a_time_and_others_are_put_off(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER, CLOCK))
    session.mind.inject(CallerText("weather in paris"))
    session.go(1)
    session.mind.inject(CallerText("what time is it"))
    session.go(40)
    assert [call.name for call in session.calls] == ["get_weather"]
    assert session.texts == {0: BUSY}
    session.mind.inject(ToolResult(session.calls[0].call, RAIN))
    session.go(40)
    session.mind.inject(CallerText("what time is it"))
    session.go(5)
    assert session.texts == {0: BUSY, 1: "The sky is rain."}
    assert [call.name for call in session.calls] == ["get_weather", "get_time"]
    assert len({call.call for call in session.calls}) == 2


def test_other_questions_are_answered_while_a_call_is_open(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER,))
    session.mind.inject(CallerText("weather in paris"))
    session.go(1)
    session.mind.inject(CallerText("what is seven times six"))
    session.go(5)
    assert session.last == "Seven times six is forty two."


def test_tools_are_taken_and_given_up_between_two_units(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.mind.inject(CallerText("what time is it"))
    session.go(40)
    session.mind.inject(Tools((CLOCK,)))
    session.mind.inject(Instructions("be kind"))
    session.mind.inject(CallerText("what time is it"))
    session.go(5)
    assert [call.name for call in session.calls] == ["get_time"]
    session.mind.inject(ToolResult(session.calls[0].call, "noon"))
    session.go(40)
    session.mind.inject(Tools(()))
    session.mind.inject(CallerText("what time is it"))
    session.go(5)
    assert session.texts == {0: "It is two oh five in the afternoon.", 1: "Noon.",
                             2: "It is two oh five in the afternoon."}


def test_an_interruption_leaves_the_call_and_its_result_is_told(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER,), greeting="Hello, this is a rather long greeting, listen to it.")
    session.go(2)
    session.mind.inject(CallerText("weather in paris"))
    session.go(1)
    assert session.yields == [2]
    session.cut(0, "Hello, ")
    session.go(2)
    assert len(session.calls) == 1
    session.cut(None)
    session.go(2)
    session.mind.inject(ToolResult(session.calls[0].call, RAIN))
    session.go(5)
    assert session.last == "The sky is rain."


def test_a_result_that_nobody_heard_because_the_caller_spoke_is_told_again(lexicon: Lexicon) -> None:
    session = Session(lexicon, tools=(WEATHER,))
    session.mind.inject(CallerText("weather in paris"))
    session.go(1)
    session.mind.inject(ToolResult(session.calls[0].call, RAIN))
    session.go(1)
    session.ear.script = growing("what is seven times six")
    session.go(12)
    session.cut(0, "")
    session.go(40)
    assert [session.texts[turn] for turn in sorted(session.texts)] == [
        "The sky is rain.", "The sky is rain.", "Seven times six is forty two."]


@pytest.mark.parametrize(("history", "calls", "said"), [
    ((), 0, []),
    ((ToolCalled("call_0_0", "get_weather", "{}", None, 0),), 0, []),
    ((ToolCalled("call_0_0", "get_weather", "{}", RAIN, 0),), 0, ["The sky is rain."]),
    ((ToolCalled("call_0_0", "get_weather", "{}", RAIN, 0), AgentSaid(0, "The sky is rain.")), 0, []),
    ((ToolCalled("call_0_0", "get_weather", "{}", RAIN, 0), AgentSaid(0, "The sky ", open=True)), 0, ["is rain."]),
    ((ToolCalled("call_0_0", "get_weather", "{}", RAIN, 0), AgentSaid(0, "The sky is rain."),
      CallerSaid("weather in rome")), 1, []),
    ((ToolCalled("call_0_0", "get_weather", "{}", None, 0), CallerSaid("weather in rome")), 0, [BUSY])])
def test_a_rebuilt_session_asks_nothing_again_and_tells_what_has_not_been_told(
        lexicon: Lexicon, history: tuple[HistoryItem, ...], calls: int, said: list[str]) -> None:
    session = Session(lexicon, tools=(WEATHER,), next_turn=1, next_unit=5, decided=5,
                      history=(CallerSaid("weather in paris"), *history) if history else ())
    session.go(40)
    assert len(session.calls) == calls
    assert list(session.texts.values()) == said
    assert "call_0_0" not in [call.call for call in session.calls]


def test_in_turn_mode_it_listens_until_it_is_asked(lexicon: Lexicon) -> None:
    session = Session(lexicon, auto=False, greeting="Hello.")
    session.say(growing("what is seven times six"))
    session.go(40)
    assert session.texts == {}
    assert session.words[-1].text == "what is seven times six"
    session.mind.respond()
    session.go(40)
    assert session.texts == {0: "Seven times six is forty two."}


def test_in_turn_mode_the_sentence_understood_last_is_answered(lexicon: Lexicon) -> None:
    session = Session(lexicon, auto=False, tools=(WEATHER,))
    session.say(growing("tell me a joke"))
    session.say(growing("what is the weather in paris", untrusted))
    session.mind.respond()
    session.go(5)
    assert [arguments(call) for call in session.calls] == [{"city": "paris"}]
    session.mind.inject(ToolResult(session.calls[0].call, RAIN))
    session.go(10)
    assert session.texts == {}
    session.mind.respond()
    session.go(10)
    assert session.texts == {0: "The sky is rain."}


def test_in_turn_mode_it_greets_or_says_that_there_is_nothing_to_answer(lexicon: Lexicon) -> None:
    session = Session(lexicon, auto=False, greeting="Hello.", tools=(WEATHER,))
    for _ in range(2):
        session.mind.respond()
        session.go(20)
    session.mind.inject(CallerText("weather in paris"))
    session.mind.respond()
    session.go(5)
    session.mind.respond()
    session.go(20)
    session.mind.inject(CallerText("mm-hm"))
    session.mind.respond()
    session.go(20)
    assert session.texts == {0: "Hello.", 1: UNHEARD, 2: BUSY, 3: BUSY}


def test_in_turn_mode_speech_and_text_over_a_reply_take_no_floor(lexicon: Lexicon) -> None:
    session = Session(lexicon, auto=False)
    session.mind.inject(CallerText("count to forty"))
    session.mind.respond()
    session.go(3)
    session.mind.inject(CallerText("what time is it"))
    session.say(growing("what is seven times six"), audible=True)
    session.go(400, audible=True)
    assert session.yields == []
    assert session.texts[0].endswith("forty.")
    assert len(session.texts) == 1


def test_in_turn_mode_an_interruption_takes_the_request_back(lexicon: Lexicon) -> None:
    session = Session(lexicon, auto=False)
    session.mind.inject(CallerText("what time is it"))
    session.mind.respond()
    session.cut(None)
    session.go(10)
    assert session.texts == {}


STEPS = st.lists(st.sampled_from([
    "weather in paris", "how is the weather", "new york", "what is seven times six", "what did I say", "tell me a joke",
    "count to five", "go on", "result", "tell", "cut"]), max_size=9)


@settings(deadline=None, max_examples=150)
@given(STEPS)
def test_a_rebuilt_dialogue_remembers_what_it_called_and_told(steps: list[str]) -> None:
    now = datetime(2026, 3, 21, 14, 30)
    dialogue, history, turn = Dialogue("seed", "", (WEATHER,)), list[HistoryItem](), 0
    results = 0
    for step in steps:
        answer = None
        if step == "result":
            for place, item in enumerate(history):
                if isinstance(item, ToolCalled) and item.output is None:
                    results += 1
                    output = f"number {results} of the results"
                    history[place] = ToolCalled(item.call, item.name, item.arguments, output, item.unit)
                    dialogue.errands.returned(item.call, output)
        elif step == "tell":
            answer = dialogue.tell(turn)
        elif step == "cut":
            if history and isinstance(last := history[-1], AgentSaid):
                heard = last.text[:last.text.find(" ") + 1]
                dialogue.cut(last.turn, heard)
                history[-1] = AgentSaid(last.turn, heard)
        else:
            said = dialogue.answer(dialogue.understand(typed(step)), turn, now, 0.0)
            history.append(CallerSaid(step))
            if isinstance(said, Request):
                call = f"call_{turn}_{dialogue.errands.calls}"
                dialogue.errands.called(call)
                history.append(ToolCalled(call, said.name, said.arguments))
            else:
                answer = said
        if answer is not None:
            history.append(AgentSaid(turn, answer.text))
            turn += 1
    again = Dialogue("seed", "", (WEATHER,))
    continuation, waiting = again.rebuild(history, now, 0.0)
    assert continuation is None
    assert waiting is None
    assert again.memory == dialogue.memory
    assert (again.errands.calls, again.errands.result) == (dialogue.errands.calls, dialogue.errands.result)
    open_calls = [item.call for item in history if isinstance(item, ToolCalled) and item.output is None]
    assert again.errands.waiting == dialogue.errands.waiting == (open_calls[-1] if open_calls else None)


PIPELINE = PipelineConfig.model_validate({
    "name": "words", "unit_ms": 80, "output_rate": 16000,
    "stages": [{"name": "thinker", "role": "thinker", "model": "embedded.thinker", "process": "one",
                "options": {"greeting": "", "warm_recognisers": 1, "frequent_words": 1000}}]})


def test_an_inline_session_calls_a_tool_and_tells_its_result() -> None:
    session = InlineSession(PIPELINE, Brief(tools=(WEATHER,), auto_respond=False))
    units = 0

    def listen() -> list[ToolCall | ReplyText]:
        nonlocal units
        for _ in range(10):
            session.append(Unit(units, SILENCE, 0.0))
            units += 1
            session.settle()
        found: list[ToolCall | ReplyText] = []
        while (event := session.pop()) is not None:
            if isinstance(event, ToolCall | ReplyText):
                found.append(event)
        return found

    session.inject(CallerText("What's the weather in Paris?"))
    assert listen() == []
    session.respond()
    (call,) = listen()
    assert isinstance(call, ToolCall)
    session.inject(ToolResult(call.call, '{"degrees": 21}'))
    session.respond()
    (text,) = listen()
    assert isinstance(text, ReplyText)
    assert text.text == "The degrees is twenty one."
    assert session.history()[1] == ToolCalled(call.call, "get_weather", '{"city": "paris"}', '{"degrees": 21}', 10)
    with pytest.raises(ValueError, match="has had its result"):
        session.inject(ToolResult(call.call, "again"))
    session.close()
