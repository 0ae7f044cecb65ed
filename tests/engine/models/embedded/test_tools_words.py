"""Tools and the dialogue: which sentence asks for which tool, with what arguments, and how a result is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Tool
from duologue.engine.models.embedded.dialogue.calling import Question, Request, request
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.memory import Asking
from duologue.engine.models.embedded.dialogue.policy import typed
from duologue.engine.models.embedded.dialogue.skills import skills, split_name
from duologue.engine.models.embedded.dialogue.telling import LONGEST, tell


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    return Tool(name, "", json.dumps({"type": "object", "properties": properties, "required": required}))


TEXT, WHOLE, NUMBER, FLAG = ({"type": kind} for kind in ("string", "integer", "number", "boolean"))
UNITS = {"type": "string", "enum": ["celsius", "fahrenheit"]}
TOOLS = (
    tool("get_weather", ("city",), city=TEXT, unit=UNITS),
    tool("bookTable", ("people",), people=WHOLE, date=TEXT, outside=FLAG),
    tool("turn_on_light", ("room", "level"), room={"enum": ["kitchen", "living_room"]}, level=NUMBER),
    tool("find_flight", ("origin", "destination"), origin=TEXT, destination=TEXT),
    tool("set_reminder", ("task",), task=TEXT, number=WHOLE),
    tool("calculator", ("expression",), expression=TEXT),
    tool("get_current_time"),
    tool("order_status", ("order_id",), order_id=TEXT),
    tool("play_songs", (), songs={"type": "array", "items": TEXT}, volume={"anyOf": [{"type": "null"}, WHOLE]}),
)


def asked(text: str, asking: Asking | None = None, tools: tuple[Tool, ...] = TOOLS) -> Request | Question | None:
    words = typed(text).words.split()
    return request(skills(tools), words, grammar().read(words).parse, asking)


@pytest.mark.parametrize(("text", "name", "arguments"), [
    ("what is the weather in paris", "get_weather", {"city": "paris"}),
    ("please tell me the weather for new york in fahrenheit please", "get_weather",
     {"city": "new york", "unit": "fahrenheit"}),
    ("how is the weather in london today", "get_weather", {"city": "london"}),
    ("book a table for four people tomorrow please", "bookTable", {"people": 4, "date": "tomorrow"}),
    ("book a table for four on friday", "bookTable", {"people": 4, "date": "friday"}),
    ("book a table outside for twenty one people", "bookTable", {"people": 21, "outside": True}),
    ("turn on the lights in the living room to 2.5", "turn_on_light", {"room": "living_room", "level": 2.5}),
    ("find a flight from rome to new york", "find_flight", {"origin": "rome", "destination": "new york"}),
    ("remind me to drink water in ten minutes", "set_reminder", {"task": "drink water", "number": 10}),
    ("what is seven times six", "calculator", {"expression": "what is seven times six"}),
    ("what time is it", "get_current_time", {}),
    ("what is the status of my order 4711", "order_status", {"order_id": "4711"}),
    ("play some songs by miles davis", "play_songs", {"songs": ["miles davis"]})])
def test_a_sentence_that_says_a_tools_name_or_means_it_asks_for_it(
        text: str, name: str, arguments: dict[str, Any]) -> None:
    found = asked(text)
    assert isinstance(found, Request)
    assert (found.name, json.loads(found.arguments)) == (name, arguments)


@pytest.mark.parametrize("text", [
    "tell me a story", "how are you", "repeat after me the weather is nice", "spell weather", "mm-hm", "book",
    "turn the lamp", "turn off the light in the kitchen", "what did I say"])
def test_other_sentences_ask_for_no_tool(text: str) -> None:
    assert asked(text) is None


@pytest.mark.parametrize(("text", "question", "answer", "arguments"), [
    ("how is the weather", "Which city?", "in new york please", {"city": "new york"}),
    ("weather", "Which city?", "it is the hague", {"city": "hague"}),
    ("turn on the light to five", "Which room: kitchen or living room?", "the kitchen",
     {"level": 5, "room": "kitchen"}),
    ("turn on the light in the kitchen", "Which number shall I take for the level?", "three",
     {"room": "kitchen", "level": 3})])
def test_what_a_tool_needs_and_was_not_said_is_asked_back_for(
        text: str, question: str, answer: str, arguments: dict[str, Any]) -> None:
    found = asked(text)
    assert isinstance(found, Question)
    assert found.text == question
    then = asked(answer, found.asking)
    assert isinstance(then, Request)
    assert json.loads(then.arguments) == arguments


def test_a_question_that_was_not_answered_is_put_again_and_dropped_for_another_matter() -> None:
    found = asked("turn on the light to five")
    assert isinstance(found, Question)
    assert asked("green ideas sleep", found.asking) == found
    assert asked("tell me a story", found.asking) is None
    assert isinstance(asked("what is the weather in rome", found.asking), Request)


def test_the_tool_whose_name_is_said_most_completely_is_called() -> None:
    tools = (tool("get_order"), tool("get_order_status"))
    assert asked("what is the status of my order", tools=tools) == Request("get_order_status", "{}")
    assert asked("read me the order", tools=tools) == Request("get_order", "{}")


def test_a_tool_that_needs_what_cannot_be_said_is_never_called() -> None:
    assert asked("upload the picture", tools=(tool("upload_picture", ("data",), data={"type": "object"}),)) is None


@pytest.mark.parametrize(("name", "words"), [
    ("get_weather", ("get", "weather")), ("getHTTPStatus2", ("get", "http", "status", "2")),
    ("book-table", ("book", "table")), ("__", ()), ("météo", ("m", "t", "o"))])
def test_a_name_is_cut_into_its_words(name: str, words: tuple[str, ...]) -> None:
    assert split_name(name) == words


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
                    max_leaves=12)
SCHEMAS = st.recursive(JSON, lambda inner: st.fixed_dictionaries({}, optional={
    "type": st.sampled_from(["object", "string", "integer", "array", "number", "boolean", "null"]) | JSON,
    "properties": st.dictionaries(st.sampled_from(["weather", "city", "a b", ""]), inner, max_size=3) | JSON,
    "required": JSON | st.lists(st.sampled_from(["weather", "city"]), max_size=2), "enum": JSON, "items": inner,
    "anyOf": st.lists(inner, max_size=2) | JSON}), max_leaves=6)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), st.text(max_size=30))
def test_no_schema_and_no_words_are_too_strange(schema: dict[str, Any], text: str) -> None:
    tools = (Tool("get_weather", "", json.dumps(schema)),)
    found = asked(f"weather in {text}", tools=tools)
    if isinstance(found, Question):
        asked(text, found.asking, tools)
    elif found is not None:
        assert isinstance(json.loads(found.arguments), dict)


@pytest.mark.parametrize(("output", "said"), [
    ('{"temperature": 21, "sky": "clear"}', "The temperature is twenty one and the sky is clear."),
    ('{"result": "It rains."}', "It rains."),
    ('{"wind": {"speedKmh": 3.5, "gusts": null}, "alerts": ["storm", "flood"]}',
     "The wind speed kmh is three point five and the alerts are storm and flood."),
    ('{"error": "no such city"}', "That did not work: no such city."),
    ('"done at noon"', "Done at noon."), ("42", "Forty two."), ("true", "Yes."), ("[1, 2, 3]", "One, two and three."),
    ("the sun  shines\n", "The sun shines."), ("", "That is done."), ("{}", "That is done."),
    ("null", "That is done.")])
def test_a_result_is_said_in_a_plain_sentence(output: str, said: str) -> None:
    assert tell(output) == said


def test_a_long_result_is_cut_at_a_sentence() -> None:
    sentence = "The sea is blue today, and it was yesterday. "
    assert tell(sentence * 20) == (sentence * (LONGEST // len(sentence))).strip()
    assert tell("word " * 200) == ("Word" + " word" * (LONGEST // 5 - 1)) + "."


@given(JSON.map(json.dumps) | st.text(max_size=400) | st.just("[" * 5000) | st.just("[" * 500 + "]" * 500))
def test_any_result_can_be_said(output: str) -> None:
    assert 0 < len(tell(output)) <= LONGEST + 1
