"""Every event the server sends, read by the models of OpenAI's own Python client."""

from __future__ import annotations

import json
from typing import Any, get_args

import numpy as np
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from duologue.agent.awaited import ANSWER_WITHIN
from duologue.agent.realtime import events as ev
from duologue.engine import CallerWords, ToolCall, TurnStatus
from tests.agent.test_call import FRAME, Scene

MODEL: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
OURS = ("duologue.", "session.closed")
"""What only those get that ask for it; ``session.closed`` is vLLM-Omni's."""


async def everything(in_events: bool) -> list[dict[str, Any]]:
    """A call in which whatever can happen does; what the client was told in it."""
    scene = Scene(in_events=in_events)
    scene.tell("session.update", session={"type": "realtime", "tracing": None, "tools": [{"name": "get_weather"}]})
    scene.tell("conversation.item.create", item={"id": "mine", "type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "hello"}]})
    scene.tell("conversation.item.create", item={"type": "message", "role": "assistant", "content": [
        {"type": "output_text", "text": "hello"}]})
    scene.onset()
    await scene.frames(10)
    scene.offset()
    await scene.frames(10)
    scene.session.emit(CallerWords("s", 0, "hello", True, 0, 2))
    scene.session.emit(ToolCall("s", "call_1", "get_weather", '{"city":"Paris"}'))
    await scene.frames(1)
    scene.tell("conversation.item.create", item={"type": "function_call_output", "call_id": "call_1", "output": "rain"})
    scene.tell("response.create", response={"metadata": {"a": "b"}})
    scene.session.say(1, 5)
    await scene.frames(8)
    scene.session.say(2, 50)
    await scene.frames(5)
    scene.session.emit(ToolCall("s", "call_2", "get_weather", "{}"))
    scene.onset()
    await scene.frames(4)
    scene.session.decide(yields=True)
    await scene.frames(4)
    item = [event["item"]["id"] for event in scene.transport.sent if event["type"] == "response.output_item.added"][1]
    scene.tell("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=10)
    scene.session.say(3, 5, last=False)
    scene.session.end(3, TurnStatus.FAILED, "xxxxx")
    await scene.frames(10)
    scene.tell("response.create")
    for _ in range(ANSWER_WITHIN // (50 * FRAME)):
        scene.call.media.feed(np.zeros(50 * FRAME, np.int16))
    await scene.frames(2)
    for known in [event["item"]["id"] for event in scene.transport.sent if event["type"] == "conversation.item.added"]:
        scene.tell("conversation.item.retrieve", item_id=known)
    scene.tell("conversation.item.delete", item_id="mine")
    scene.tell("input_audio_buffer.clear")
    scene.tell("conversation.item.retrieve", event_id="e1", item_id="none")
    scene.call.media.dtmf("4")
    scene.call.media.gone("hung up")
    await scene.call.wait_closed()
    return [event for event in scene.transport.sent
            if event["type"] != "audio" and not event["type"].startswith(OURS)]


@pytest.mark.parametrize("in_events", [False, True])
async def test_openais_client_reads_every_event(in_events: bool) -> None:
    sent = await everything(in_events)
    for event in sent:
        MODEL.validate_python(event, strict=False)
        assert event["event_id"]
    told = {event["type"] for event in sent}
    models = [model for model in vars(ev).values() if isinstance(model, type) and issubclass(model, ev.ServerEvent)]
    known = {kind for model in models if "type" in model.model_fields
             for kind in get_args(model.model_fields["type"].annotation)}
    media = {"response.output_audio.delta"}  # the transport's own
    buffers = {kind for kind in known if kind.startswith("output_audio_buffer.")}
    expected = {kind for kind in known - media if not kind.startswith(OURS)}
    assert told == (expected - buffers if in_events else expected)


def test_openais_client_reads_the_events_that_the_socket_makes_itself() -> None:
    for event in (ev.AudioDelta(event_id="e", response_id="r", item_id="i", delta="AAAA"),
                  ev.ErrorEvent(event_id="e", error=ev.ErrorBody(type="invalid_request_error", code="x", message="y"))):
        MODEL.validate_python(json.loads(event.model_dump_json(exclude_none=True)))


async def test_no_optional_field_of_an_item_is_ever_null() -> None:
    """Some clients ignore an event that has one, or end their process."""
    def walk(value: object) -> None:
        if isinstance(value, dict):
            assert None not in value.values(), value
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    for event in await everything(True):
        if not event["type"].startswith("session."):
            walk(event)
        if event.get("item", {}).get("role") == "user":
            assert all("transcript" in part for part in event["item"]["content"] if part["type"] == "input_audio")
