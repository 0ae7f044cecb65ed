"""What a client is told of a call, in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duologue.agent.realtime import events as ev
from duologue.agent.realtime.items import MAX_ITEMS
from duologue.agent.realtime.parse import MAX_EVENT_CHARS, BadEventError, parse
from duologue.agent.realtime.projection import Projection
from duologue.agent.realtime.session import SessionObject


class Client:
    """A projection and what it emitted."""

    def __init__(self, ours: bool = False) -> None:
        self.events: list[ev.ServerEvent] = []
        self.projection = Projection(SessionObject("embedded"), self.events.append)
        if ours:
            self.update({"duologue": {"events": True}})
            self.events.clear()

    def update(self, change: dict[str, Any]) -> None:
        self.projection.updated(self.projection.session.merged(change))

    @property
    def types(self) -> list[str]:
        return [str(getattr(event, "type")) for event in self.events]  # noqa: B009

    def last(self, kind: str) -> dict[str, object]:
        found = [event for event in self.events if getattr(event, "type") == kind]  # noqa: B009
        data: dict[str, object] = json.loads(found[-1].model_dump_json(exclude_none=True))
        return data


def test_a_spoken_reply_has_the_order_every_client_relies_on() -> None:
    client = Client()
    client.projection.reply_opened(1)
    client.projection.reply_text(1, "Hello ")
    client.projection.play_started(1)
    client.projection.reply_text(1, "there.")
    client.projection.reply_ended(1, "completed")
    client.projection.play_finished(1)
    assert client.types == [
        "response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
        "response.output_audio_transcript.delta", "output_audio_buffer.started",
        "response.output_audio_transcript.delta", "response.output_audio.done",
        "response.output_audio_transcript.done", "response.content_part.done", "conversation.item.done",
        "response.output_item.done", "response.done", "output_audio_buffer.stopped"]
    assert client.last("response.output_audio_transcript.done")["transcript"] == "Hello there."


def test_a_cut_reply_is_cancelled_once_and_its_item_holds_what_was_heard() -> None:
    client = Client(ours=True)
    client.projection.reply_opened(1)
    client.projection.reply_text(1, "One, two, three.")
    client.projection.reply_cut(1, "One, two", 900, "turn_detected")
    client.projection.reply_ended(1, "cancelled")
    assert client.types.count("response.done") == 1
    assert client.types[-3:] == ["output_audio_buffer.cleared", "conversation.item.truncated", "duologue.reply.heard"]
    response = client.last("response.done")["response"]
    assert isinstance(response, dict)
    assert response["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    assert response["output"][0]["content"] == [{"type": "output_audio", "transcript": "One, two"}]
    assert response["output"][0]["status"] == "incomplete"


def test_a_reply_cut_after_it_was_complete_is_not_ended_twice() -> None:
    client = Client()
    client.projection.reply_opened(1)
    client.projection.reply_text(1, "One, two.")
    client.projection.reply_ended(1, "completed")
    client.projection.reply_cut(1, "One,", 400, "client_cancelled")
    assert client.types.count("response.done") == 1
    item_id = str(client.last("conversation.item.truncated")["item_id"])
    client.projection.retrieve(item_id, None)
    item = client.last("conversation.item.retrieved")["item"]
    assert isinstance(item, dict)
    assert item["content"][0]["transcript"] == "One,"


def test_a_failed_reply_is_a_failed_response_and_no_error_event() -> None:
    client = Client()
    client.projection.reply_opened(1)
    client.projection.reply_ended(1, "failed", "The voice stage stopped.")
    assert "error" not in client.types
    response = client.last("response.done")["response"]
    assert isinstance(response, dict)
    assert response["status"] == "failed"
    assert response["status_details"]["error"]["message"] == "The voice stage stopped."


def test_the_callers_words_become_one_item_whatever_pauses_they_had() -> None:
    client = Client()
    client.projection.speech_started(1000)
    client.projection.speech_stopped(1500)
    client.projection.caller_words(0, "remind me", False, 1000, 1500)
    client.projection.speech_started(1900)
    client.projection.speech_stopped(2500)
    client.projection.caller_words(0, "remind me to call mum", True, 1000, 2500)
    assert client.types == [
        "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped", "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped", "input_audio_buffer.committed", "conversation.item.added",
        "conversation.item.done", "conversation.item.input_audio_transcription.completed"]
    ids = {str(getattr(event, "item_id", None) or getattr(event, "item").id) for event in client.events}  # noqa: B009
    assert len(ids) == 1
    done = client.last("conversation.item.input_audio_transcription.completed")
    assert done["usage"] == {"type": "duration", "seconds": 1.5}


def test_noise_leaves_no_item() -> None:
    client = Client()
    client.projection.speech_started(0)
    client.projection.speech_stopped(100)
    client.projection.caller_words(0, "", True, 0, 100)
    assert client.types == ["input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"]


def test_our_own_events_go_only_to_clients_that_asked() -> None:
    for ours in (False, True):
        client = Client(ours=ours)
        client.projection.ours(ev.StateEvent(state="listening", at_ms=0))
        client.projection.caller_words(0, "hello", False, 0, 80)
        client.projection.reply_opened(1)
        client.projection.reply_cut(1, "", 0, "turn_detected")
        assert any(kind.startswith("duologue.") for kind in client.types) == ours


def test_a_session_update_is_a_deep_merge_and_keeps_what_the_server_decides() -> None:
    client = Client()
    client.projection.opened()
    client.update({"type": "realtime", "model": "other", "tracing": "auto",
                              "audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}})
    session = client.last("session.updated")["session"]
    assert isinstance(session, dict)
    assert session["model"] == "embedded"
    assert session["tracing"] == "auto"
    assert session["audio"]["input"]["turn_detection"]["interrupt_response"] is True
    assert session["audio"]["output"]["format"] == {"type": "audio/pcm", "rate": 24000}


def test_an_unknown_item_is_refused_with_the_clients_event_id() -> None:
    client = Client()
    client.projection.retrieve("item_x", "ev_1")
    error = client.last("error")["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["event_id"]) == ("item_retrieve_invalid_item_id", "ev_1")


def test_items_are_kept_up_to_a_bound() -> None:
    client = Client()
    for n in range(MAX_ITEMS + 1):
        client.projection.created(ev.Item(id=f"item_{n}", status="completed", role="user",
                                          content=(ev.Content(type="input_text", text=f"text {n}"),)))
    client.projection.retrieve("item_0", None)
    assert client.types[-1] == "error"
    client.projection.retrieve("item_1", None)
    assert client.types[-1] == "conversation.item.retrieved"


@pytest.mark.parametrize(("message", "code"), [
    ("{", "invalid_json"),
    ("[" * 60_000, "invalid_json"),
    ("[]", "bad_event"),
    ('{"type": 3}', "bad_event"),
    ('{"type": "session.update"}', "bad_event"),
    ('{"type": "session.update", "session": 5}', "bad_event"),
    ('{"type": "conversation.item.create", "item": {"content": "x"}}', "bad_event"),
    ('{"type": "make.tea", "event_id": "e"}', "unknown_event"),
    ('{"type": "' + "x" * MAX_EVENT_CHARS + '"}', "event_too_large"),
])
def test_a_bad_event_is_refused_by_name(message: str, code: str) -> None:
    with pytest.raises(BadEventError) as refusal:
        parse(message)
    assert refusal.value.code == code
    assert len(str(refusal.value)) < 300


def test_fields_we_do_not_read_are_accepted() -> None:
    event = parse('{"type":"response.create","event_id":"a","response":{"instructions":null,"metadata":{"x":"y"}}}')
    assert (event.type, event.event_id) == ("response.create", "a")
