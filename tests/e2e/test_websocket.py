"""OpenAI's own Python client calls the real server: a spoken turn, an interruption, a tool, turn mode."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from tests.harness.answers import number_in
from tests.harness.microphone import Microphone, speak
from tests.harness.recogniser import counted, number_words
from tests.harness.server import running_server
from tests.harness.websocket import WIRE_RATE, socket_call

pytestmark = pytest.mark.e2e

GREETED_S = 4.5
"""Seconds after which the embedded agent has said hello."""

WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}


async def test_a_spoken_question_is_answered_and_both_sides_are_written_down(tmp_path: Path) -> None:
    microphone = Microphone().pause(GREETED_S).say("what is seven plus five")
    async with running_server(tmp_path) as server:
        async with socket_call(server.url, microphone) as caller:
            await caller.until("response.done", 2)
            await asyncio.sleep(1)
            said = caller.of("conversation.item.input_audio_transcription.completed")
            assert [event["transcript"] for event in said] == ["what is seven plus five"]
            assert [event["response"]["status"] for event in caller.of("response.done")] == ["completed"] * 2
            assert "twelve" in caller.of("response.output_audio_transcript.done")[-1]["transcript"]
            asked = microphone.utterances[-1].span.end * WIRE_RATE // 48_000
            assert await asyncio.to_thread(number_in, caller.heard[asked:], WIRE_RATE) == 12
            assert caller.of("error") == []
        assert await server.metric_reaches("duologue_calls_live", 0)
        assert await server.metric("duologue_calls_total", transport="websocket", outcome="hung up") == 1


async def test_an_interrupted_item_holds_what_was_played_and_the_agent_knows_it(tmp_path: Path) -> None:
    microphone = (Microphone().pause(GREETED_S).say("count to twenty").pause(6)
                  .say("stop").pause(2).say("what was the last number you said"))
    async with running_server(tmp_path) as server, socket_call(server.url, microphone) as caller:
        await caller.until("conversation.item.input_audio_transcription.completed", 3)
        await caller.until("response.done", len(caller.of("response.created")))
        await asyncio.sleep(4)
        cut, = (event["response"] for event in caller.of("response.done") if event["response"]["status"] == "cancelled")
        assert cut["status_details"]["reason"] == "turn_detected"
        item = cut["output"][0]
        generated = "".join(event["delta"] for event in caller.of("response.output_audio_transcript.delta")
                            if event["item_id"] == item["id"])
        heard = item["content"][0]["transcript"]
        assert generated.startswith(heard)
        assert 0 < len(heard) < len(generated)
        # Nothing of it came after its end, and no truncation but the one that was asked for, if one was.
        done = next(number for number, event in enumerate(caller.events)
                    if event["type"] == "response.done" and event["response"]["id"] == cut["id"])
        assert not any(event.get("item_id") == item["id"] for event in caller.events[done:]
                       if event["type"] == "response.output_audio.delta")
        assert len(caller.of("conversation.item.truncated")) <= 1
        played = [number for number, _ in await asyncio.to_thread(
            counted, caller.heard[:caller.places[done] + WIRE_RATE // 10], WIRE_RATE)]
        assert len(played) >= 2
        last = caller.of("response.output_audio_transcript.done")[-1]["transcript"].lower()
        words = number_words(re.findall(r"[a-z]+", last))
        # The word under the cut may be made out by one side and not by the other; more than one it cannot be.
        assert abs(words[-1] - played[-1]) <= 1
        assert caller.of("error") == []


async def test_a_tool_is_called_with_what_was_said_and_its_result_is_spoken(tmp_path: Path) -> None:
    microphone = Microphone().pause(GREETED_S).say("what is the weather in paris")
    async with running_server(tmp_path) as server, socket_call(server.url, microphone, tools=[WEATHER]) as caller:
        asked = await caller.until("response.function_call_arguments.done")
        assert asked["name"] == "get_weather"
        assert json.loads(asked["arguments"]) == {"city": "paris"}
        count = len(caller.of("response.created"))
        await caller.until("response.done", count)
        await caller.connection.conversation.item.create(item={
            "type": "function_call_output", "call_id": asked["call_id"], "output": '{"weather": "rain"}'})
        await caller.connection.response.create(response={"metadata": {"client_event_id": "mine"}})
        answer = await caller.until("response.done", count + 1)
        assert answer["response"]["metadata"] == {"client_event_id": "mine"}
        assert answer["response"]["status"] == "completed"
        assert "rain" in answer["response"]["output"][0]["content"][0]["transcript"]
        assert caller.of("error") == []


async def test_in_turn_mode_a_client_that_sends_no_silence_is_answered(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, socket_call(
            server.url, audio={"input": {"turn_detection": None}}) as caller:
        assert (await caller.until("session.updated"))["session"]["audio"]["input"]["turn_detection"] is None
        for question, answer in (("what is seven plus five", "twelve"), ("what is six plus nine", "fifteen")):
            await caller.append(speak(question))
            await caller.connection.input_audio_buffer.commit()
            await caller.connection.response.create()
            done = len(caller.of("response.done"))
            response = (await caller.until("response.done", done + 1))["response"]
            assert response["status"] == "completed"
            assert answer in response["output"][0]["content"][0]["transcript"]
        assert caller.of("input_audio_buffer.speech_started") == []
        assert caller.of("error") == []
