"""A call's events as a room sees them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duologue.agent.realtime import events as ev
from duologue.agent.realtime.projection import Projection
from duologue.agent.realtime.session import SessionObject
from duologue.agent.transports.livekit.projection import (
    AgentState,
    Caption,
    Message,
    Notice,
    RoomProjection,
    Spoken,
    SpokenDone,
)


class Scene:
    """The call's own projection in front of the room's."""

    def __init__(self, *, own_events: bool = False) -> None:
        self.room = RoomProjection(own_events=own_events)
        self.told: list[Notice] = []
        self.call = Projection(SessionObject("model"), self._emit)
        self.call.session = self.call.session.merged({"duologue": {"events": True}})

    def _emit(self, event: ev.ServerEvent) -> None:
        self.told += self.room.outgoing(event.model_dump_json(exclude_none=True))

    @property
    def captions(self) -> list[Notice]:
        return [notice for notice in self.told if not isinstance(notice, Message)]

    def messages(self) -> list[str]:
        return [json.loads(notice.text)["type"] for notice in self.told if isinstance(notice, Message)]


def test_a_reply_is_one_stream_that_is_closed_once() -> None:
    scene = Scene()
    scene.call.reply_opened(1)
    scene.call.reply_text(1, "Hello, ")
    scene.call.reply_text(1, "you.")
    scene.call.reply_ended(1, "completed")
    first, second, done = scene.captions
    assert isinstance(first, Spoken)
    assert isinstance(second, Spoken)
    assert isinstance(done, SpokenDone)
    assert (first.text, second.text) == ("Hello, ", "you.")
    assert first.segment == second.segment == done.segment


@pytest.mark.parametrize("complete", [False, True])
def test_a_cut_reply_is_replaced_by_what_was_heard(complete: bool) -> None:
    scene = Scene()
    scene.call.reply_opened(1)
    scene.call.reply_text(1, "One, two, three.")
    if complete:
        scene.call.reply_ended(1, "completed")
    scene.call.reply_cut(1, "One, ", 900, "turn_detected")
    spoken, done, heard = scene.captions
    assert isinstance(spoken, Spoken)
    assert done == SpokenDone(spoken.segment)
    assert heard == Caption(spoken.segment, "One, ", by_caller=False, final=True)


def test_a_reply_without_words_opens_no_stream() -> None:
    scene = Scene()
    scene.call.reply_opened(1)
    scene.call.reply_ended(1, "failed", "broken")
    assert scene.captions == []


def test_the_callers_words_replace_one_another_until_they_are_final() -> None:
    scene = Scene()
    scene.call.speech_started(0)
    scene.call.caller_words(1, "what is", False, 0, 500)
    scene.call.caller_words(1, "what is seven", True, 0, 900)
    partial, final = scene.captions
    assert isinstance(partial, Caption)
    assert isinstance(final, Caption)
    assert partial.segment == final.segment
    assert [(one.text, one.by_caller, one.final) for one in (partial, final)] == [
        ("what is", True, False), ("what is seven", True, True)]


@pytest.mark.parametrize(("ours", "theirs"), [
    ("listening", "listening"), ("thinking", "thinking"), ("speaking", "speaking"), ("ducked", "speaking"),
    ("paused", "listening"),
])
def test_the_agents_state_is_said_in_livekits_words(ours: str, theirs: str) -> None:
    scene = Scene()
    scene.call.ours(ev.StateEvent(state=ours, at_ms=0))
    assert scene.captions == [AgentState(theirs)]


def test_our_own_events_go_only_to_rooms_that_asked() -> None:
    for asked in (False, True):
        scene = Scene(own_events=asked)
        scene.call.opened()
        scene.call.ours(ev.StateEvent(state="listening", at_ms=0))
        assert scene.messages() == ["session.created", *(["duologue.state"] if asked else [])]


def update(**session: Any) -> str:
    return json.dumps({"type": "session.update", "event_id": "e1", "session": session})


def test_a_client_that_wants_none_of_our_events_does_not_take_the_captions_with_them() -> None:
    scene = Scene(own_events=True)
    passed = json.loads(scene.room.incoming(update(instructions="x", duologue={"events": False})))
    assert passed == {"type": "session.update", "event_id": "e1",
                      "session": {"instructions": "x", "duologue": {"events": True}}}
    scene.call.ours(ev.StateEvent(state="thinking", at_ms=0))
    assert scene.messages() == []
    assert scene.captions == [AgentState("thinking")]


@pytest.mark.parametrize("message", [
    "nonsense", "[]", '"text"', update(instructions="x"), update(duologue=True), '{"type": "response.cancel"}',
    '{"type": "session.update", "session": 5}', "[" * 5000,
])
def test_any_other_message_reaches_the_call_as_it_is(message: str) -> None:
    assert RoomProjection(own_events=False).incoming(message) == message
