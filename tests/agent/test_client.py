"""What a client asks of its call: tools, turn mode, items, settings; the same by every door."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from duologue.agent.awaited import ANSWER_WITHIN
from duologue.engine import Brief, CallerText, CallerWords, Instructions, Tool, ToolCall, ToolResult, Tools
from tests.agent.test_call import FRAME, PIPELINE, Scene

WEATHER = {"type": "function", "name": "get_weather", "description": "The weather of a city",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
CALLED = ToolCall("s", "call_3", "get_weather", '{"city":"Paris"}')
TURN_MODE = {"audio": {"input": {"turn_detection": None}}}


def message(text: str, **fields: object) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}], **fields}


def codes(scene: Scene) -> list[str]:
    return [event["error"]["code"] for event in scene.transport.sent if event["type"] == "error"]


# --- tools ----------------------------------------------------------------------------------------------------


async def test_a_tool_call_is_a_response_of_its_own_in_the_order_clients_rely_on() -> None:
    scene = Scene()
    scene.session.emit(CALLED)
    await scene.frames(1)
    assert [kind for kind in scene.types() if not kind.startswith("duologue.")][2:] == [
        "response.created", "response.output_item.added", "conversation.item.added",
        "response.function_call_arguments.delta", "response.function_call_arguments.done", "conversation.item.done",
        "response.output_item.done", "response.done"]
    begun, whole = scene.last("response.output_item.added")["item"], scene.last("response.output_item.done")["item"]
    assert (begun["arguments"], begun["status"]) == ("", "in_progress")
    assert (whole["arguments"], whole["status"], whole["name"]) == ('{"city":"Paris"}', "completed", "get_weather")
    assert scene.last("response.function_call_arguments.done")["call_id"] == "call_3"
    assert scene.last("response.done")["response"]["output"] == [whole]


@pytest.mark.parametrize("in_events", [False, True])
async def test_a_tool_that_is_called_in_a_reply_is_an_item_of_its_response(in_events: bool) -> None:
    scene = Scene(in_events=in_events)
    scene.session.say(1, 4, last=False)
    await scene.frames(2)
    scene.session.emit(CALLED)
    scene.session.say(1, 2)
    await scene.frames(8)
    assert scene.types("response.created", "response.done") == ["response.created", "response.done"]
    assert scene.last("response.function_call_arguments.done")["output_index"] == 1
    assert [item["type"] for item in scene.last("response.done")["response"]["output"]] == ["message", "function_call"]


async def test_a_tools_result_reaches_the_model_and_is_acknowledged_under_its_own_id() -> None:
    scene = Scene()
    scene.session.emit(CALLED)
    await scene.frames(1)
    scene.tell("conversation.item.create", event_id="e1", previous_item_id="item_x", item={
        "id": "item_mine", "type": "function_call_output", "call_id": "call_3", "output": "sunny"})
    assert scene.session.items == [ToolResult("call_3", "sunny")]
    item = scene.last("conversation.item.added")["item"]
    assert (item["id"], item["type"], item["output"]) == ("item_mine", "function_call_output", "sunny")


async def test_a_result_that_nobody_waits_for_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()

    def refuse(_item: object) -> None:
        raise ValueError("there was no tool call 'call_9'")

    monkeypatch.setattr(scene.session, "inject", refuse)
    scene.tell("conversation.item.create", event_id="e1", item={
        "type": "function_call_output", "call_id": "call_9", "output": "sunny"})
    error = scene.last("error")["error"]
    assert (error["code"], error["event_id"]) == ("item_create_invalid_call_id", "e1")
    assert "call_9" in error["message"]


async def test_a_conversation_from_before_can_be_told_without_being_answered() -> None:
    scene = Scene()
    scene.tell("conversation.item.create", item={"id": "a", "type": "message", "role": "assistant",
                                                 "content": [{"type": "output_text", "text": "It rains."}]})
    scene.tell("conversation.item.create", item={"id": "b", "type": "function_call", "call_id": "call_old",
                                                 "name": "get_weather", "arguments": "{}"})
    scene.tell("conversation.item.create", item={"id": "c", "type": "function_call_output", "call_id": "call_old",
                                                 "output": "sunny"})
    assert codes(scene) == []
    assert scene.session.items == []
    assert scene.types("conversation.item.added") == ["conversation.item.added"] * 3


async def test_tools_and_instructions_can_be_changed_during_a_call_and_are_given_once() -> None:
    scene = Scene()
    await scene.frames(4)
    for _ in range(2):
        scene.tell("session.update", session={"instructions": "Be brief.", "tools": [WEATHER, {"type": "mcp"}]})
    parameters = json.dumps(WEATHER["parameters"])
    assert scene.session.items == [Instructions("Be brief."),
                                   Tools((Tool("get_weather", "The weather of a city", parameters),))]
    scene.tell("session.update", session={"tool_choice": "none"})
    assert scene.session.items[-1] == Tools(())
    assert codes(scene) == []


@pytest.mark.parametrize("tools", [
    [{"type": "function"}], [{"name": "x" * 65}], ["text"], "text", [{"name": "a", "parameters": []}],
    [{"name": str(n)} for n in range(129)]])
async def test_tools_that_cannot_be_called_are_refused_and_nothing_is_changed(tools: object) -> None:
    scene = Scene()
    scene.tell("session.update", event_id="e1", session={"instructions": "other", "tools": tools})
    assert codes(scene) == ["invalid_value"]
    assert scene.last("error")["error"]["event_id"] == "e1"
    assert scene.session.items == []
    scene.tell("session.update", session={})
    assert scene.last("session.updated")["session"]["instructions"] == ""


async def test_a_system_message_is_added_to_the_instructions() -> None:
    scene = Scene(wishes={"instructions": "Be brief."})
    scene.tell("conversation.item.create", item=message("The caller is called Ann.", role="system"))
    assert scene.session.items == [Instructions("Be brief.\n\nThe caller is called Ann.")]
    scene.tell("session.update", session={"instructions": "Be kind."})
    assert scene.session.items[-1] == Instructions("Be kind.\n\nThe caller is called Ann.")


# --- who begins a reply ---------------------------------------------------------------------------------------


async def test_turn_detection_can_be_taken_away_before_the_first_audio_only() -> None:
    scene = Scene()
    scene.tell("session.update", session={**TURN_MODE, "instructions": "Be brief."})
    assert scene.session.briefs == [Brief("Be brief.", auto_respond=False)]
    assert scene.last("session.updated")["session"]["audio"]["input"]["turn_detection"] is None
    assert scene.session.items == []
    await scene.frames(4)
    scene.tell("session.update", event_id="e1",
               session={"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}})
    error = scene.last("error")["error"]
    assert (error["code"], error["event_id"]) == ("invalid_value", "e1")
    assert "before the first audio" in error["message"]


async def test_an_unknown_voice_is_taken_and_after_the_first_audio_the_voice_stays() -> None:
    scene = Scene()
    scene.tell("session.update", session={"audio": {"output": {"voice": "marin"}}})
    assert scene.session.briefs == [Brief(voice="marin")]
    await scene.frames(4)
    scene.tell("session.update", session={"audio": {"output": {"voice": "ash"}}})
    assert scene.last("session.updated")["session"]["audio"]["output"]["voice"] == "marin"
    assert codes(scene) == []


async def test_in_turn_mode_the_client_asks_and_its_words_come_back() -> None:
    scene = Scene(wishes=TURN_MODE)
    scene.tell("response.create", event_id="e1",
               response={"instructions": "In French.", "metadata": {"client_event_id": "x"}})
    assert scene.session.asked == ["In French."]
    scene.tell("response.create", event_id="e2", response={"instructions": None})
    assert codes(scene) == ["conversation_already_has_active_response"]
    scene.session.say(1, 4)
    await scene.frames(8)
    for kind in ("response.created", "response.done"):
        assert scene.last(kind)["response"]["metadata"] == {"client_event_id": "x"}
    scene.tell("response.create")
    assert scene.session.asked == ["In French.", ""]
    scene.session.emit(CALLED)
    await scene.frames(1)
    assert "metadata" not in scene.last("response.created")["response"]
    assert not scene.call.media.awaits_time


async def test_in_turn_mode_speech_is_neither_told_nor_stops_the_reply() -> None:
    scene = Scene(wishes=TURN_MODE)
    scene.session.say(1, 20)
    await scene.frames(3)
    scene.onset()
    await scene.frames(30)
    assert scene.session.cuts == []
    assert scene.types("input_audio_buffer.speech_started") == []
    assert np.count_nonzero(np.concatenate(scene.played)) == 20 * FRAME


async def test_a_commit_owes_the_model_the_rest_of_a_unit_and_one_more() -> None:
    scene = Scene(in_events=True, wishes=TURN_MODE)
    await scene.frames(5)
    assert scene.call.media.silence_due == 0
    scene.tell("input_audio_buffer.commit")
    assert scene.call.media.silence_due == 3 * FRAME + PIPELINE.unit_samples
    await scene.frames(3)
    assert scene.call.media.silence_due == PIPELINE.unit_samples
    committed = scene.last("input_audio_buffer.committed")["item_id"]
    scene.session.emit(CallerWords("s", 0, "hello", True, 0, 1))
    await scene.frames(1)
    assert scene.types("input_audio_buffer.committed") == ["input_audio_buffer.committed"]
    assert scene.last("conversation.item.input_audio_transcription.completed")["item_id"] == committed


async def test_a_request_that_nothing_comes_of_is_answered_with_an_incomplete_response() -> None:
    for wishes in ({}, TURN_MODE):
        scene = Scene(in_events=True, wishes=wishes)
        scene.tell("response.create", response={"metadata": {"client_event_id": "x"}})
        assert scene.call.media.awaits_time
        await scene.frames(2)
        for _ in range(ANSWER_WITHIN // (50 * FRAME)):
            scene.call.media.feed(np.zeros(50 * FRAME, np.int16))
        await scene.frames(2)
        response = scene.last("response.done")["response"]
        assert (response["status"], response["metadata"]) == ("incomplete", {"client_event_id": "x"})
        assert scene.types("response.done") == ["response.done"]
        assert scene.session.cuts == ([(-1, 0)] if wishes else [])
        assert not scene.call.media.awaits_time


async def test_a_request_that_comes_during_the_reply_is_answered_by_it() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 10)
    await scene.frames(2)
    scene.tell("response.create", response={"metadata": {"client_event_id": "x"}})
    assert not scene.call.media.awaits_time
    await scene.frames(12)
    for _ in range(ANSWER_WITHIN // (50 * FRAME) + 1):
        scene.call.media.feed(np.zeros(50 * FRAME, np.int16))
    await scene.frames(2)
    assert scene.types("response.done", "error") == ["response.done"]


async def test_a_request_can_be_taken_back_and_a_cancel_of_nothing_is_no_error() -> None:
    scene = Scene(wishes=TURN_MODE)
    scene.tell("response.cancel")
    assert scene.types("response.done", "error") == []
    scene.tell("response.create")
    scene.tell("response.cancel")
    scene.tell("response.cancel")
    assert scene.session.cuts == [(-1, 0)]
    assert scene.last("response.done")["response"]["status"] == "cancelled"
    assert scene.types("response.done", "error") == ["response.done"]


async def test_time_is_awaited_until_the_replys_text_is_whole() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 20, last=False)
    await scene.frames(1)
    assert scene.call.media.awaits_time
    scene.session.say(1, 20)
    await scene.frames(1)
    assert not scene.call.media.awaits_time
    assert scene.call.media.sounding


# --- items and the rest ---------------------------------------------------------------------------------------


async def test_an_item_keeps_its_name_can_be_deleted_and_cannot_come_twice() -> None:
    scene = Scene()
    scene.tell("conversation.item.create", item=message("hello", id="mine"))
    scene.tell("conversation.item.create", event_id="e2", item=message("hello", id="mine"))
    assert scene.session.items == [CallerText("hello")]
    assert scene.last("error")["error"]["event_id"] == "e2"
    scene.tell("conversation.item.delete", item_id="mine")
    assert scene.last("conversation.item.deleted")["item_id"] == "mine"
    scene.tell("conversation.item.delete", item_id="mine")
    scene.tell("conversation.item.truncate", item_id="mine", content_index=0, audio_end_ms=3)
    assert codes(scene) == ["item_create_duplicate_item_id", "item_delete_invalid_item_id",
                            "item_truncate_invalid_item_id"]


@pytest.mark.parametrize("item", [
    message("hello", role="robot"), message("  "), {"type": "message", "role": "user", "content": [
        {"type": "input_audio", "audio": "AAAA"}]}, {"type": "function_call_output", "call_id": "x"},
    {"type": "function_call", "name": "x"}, {"type": "mcp_list_tools"}, message("x", id=""), message("x", id="y" * 65)])
async def test_items_that_cannot_be_made_are_refused_with_the_clients_event_id(item: dict[str, Any]) -> None:
    scene = Scene()
    scene.tell("conversation.item.create", event_id="e1", item=item)
    error = scene.last("error")["error"]
    assert (error["code"], error["event_id"]) == ("bad_event", "e1")
    assert scene.session.items == []


async def test_what_clients_send_as_a_matter_of_course_is_no_error() -> None:
    scene = Scene()
    for kind in ("session.heartbeat", "playback.ack", "input_audio_buffer.commit", "output_audio_buffer.clear"):
        scene.tell(kind, played_ms=3)
    scene.tell("input_audio_buffer.clear")
    assert codes(scene) == []
    assert scene.last("input_audio_buffer.cleared")


async def test_a_client_may_close_its_session() -> None:
    scene = Scene()
    scene.tell("session.close")
    await scene.call.wait_closed()
    assert scene.types("session.closed") == ["session.closed"]
    assert scene.call.outcome == "hung up"
