"""A call whose client gets the reply among the events and plays it itself: order, pace and what counts as heard."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.awaited import REPLY_WITHIN
from duologue.engine import CallerWords, Choice, Fence, ReplyAudio, ReplyText, TextSpan, TurnStatus
from tests.agent.test_call import FRAME, PIPELINE, Scene

END = ["response.output_audio.done", "response.output_audio_transcript.done", "response.content_part.done",
       "conversation.item.done", "response.output_item.done", "response.done"]


def without_ours(scene: Scene) -> list[str]:
    """What the client was told, runs of audio as one."""
    told: list[str] = []
    for kind in scene.types():
        if not kind.startswith("duologue.") and not (kind == "audio" and told[-1:] == ["audio"]):
            told.append(kind)
    return told[2:]  # session.created and session.updated


def audio_of(scene: Scene, item_id: str) -> int:
    return sum(event["pcm"].size for event in scene.transport.sent
               if event["type"] == "audio" and event["item_id"] == item_id)


async def test_a_response_ends_after_the_last_of_its_audio() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 5)
    await scene.frames(8)
    assert without_ours(scene) == [
        "response.created", "response.output_item.added", "conversation.item.added", "response.content_part.added",
        "response.output_audio_transcript.delta", "audio", *END]
    assert audio_of(scene, scene.last("response.output_item.done")["item"]["id"]) == 5 * FRAME


async def test_audio_that_ends_inside_a_frame_is_given_to_the_sample() -> None:
    scene = Scene(in_events=True)
    fence = Fence("s", 0, 1, 0)
    scene.session.emit(ReplyText(fence, 0, "a", True))
    scene.session.emit(ReplyAudio(fence, 0, np.full(100, 7, np.int16), (), True))
    scene.session.text[1] = "a"
    scene.session.end(1, TurnStatus.DONE, "a")
    await scene.frames(3)
    assert audio_of(scene, scene.last("response.output_item.done")["item"]["id"]) == 100


async def test_where_a_replys_words_are_is_told_ahead_of_their_audio() -> None:
    scene = Scene(in_events=True)
    fence, rate = Fence("s", 0, 1, 0), PIPELINE.output_rate
    scene.session.emit(ReplyText(fence, 0, "one two", True))
    spans = (TextSpan(0, 3, rate // 10, rate // 2),)
    scene.session.emit(ReplyAudio(fence, 0, np.full(rate, 7, np.int16), spans, False))
    scene.session.emit(ReplyAudio(fence, rate, np.full(rate, 7, np.int16), (), False))
    await scene.frames(3)
    told = scene.last("duologue.reply.words")
    assert told["words"] == [{"start": 0, "end": 3, "start_ms": 100, "end_ms": 500}]
    assert told["item_id"] == scene.last("response.output_item.added")["item"]["id"]
    assert scene.types().index("duologue.reply.words") < scene.types().index("audio")
    assert scene.types().count("duologue.reply.words") == 1


async def test_one_response_follows_the_other_however_early_the_next_is_written() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 6)
    scene.session.say(2, 4)
    await scene.frames(3)
    assert scene.types("response.created") == ["response.created"]
    await scene.frames(12)
    told = [kind for kind in without_ours(scene) if kind in ("response.created", "audio", "response.done")]
    assert told == ["response.created", "audio", "response.done"] * 2
    deltas = [event["delta"] for event in scene.transport.sent
              if event["type"] == "response.output_audio_transcript.delta"]
    assert deltas == ["x" * 6, "x" * 4]


async def test_speech_that_does_not_interrupt_is_not_told_for_clients_throw_the_reply_away() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 60)
    await scene.frames(10)
    scene.onset()
    await scene.frames(15)
    scene.offset()
    await scene.frames(1)
    scene.session.decide()
    await scene.frames(120)
    assert scene.types("input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped") == []
    assert scene.last("response.done")["response"]["status"] == "completed"
    # All of it, but for the silence in which it was held.
    assert audio_of(scene, scene.last("response.output_item.done")["item"]["id"]) == 60 * FRAME


async def test_an_interruption_is_told_before_the_response_it_cancels_and_nothing_is_sent_after_it() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 60)
    await scene.frames(10)
    scene.onset()
    await scene.frames(5)
    scene.session.decide(yields=True)
    await scene.frames(5)
    scene.offset()
    await scene.frames(5)
    scene.session.emit(CallerWords("s", 0, "stop", True, 0, 2))
    await scene.frames(5)
    told = without_ours(scene)
    assert told[told.index("audio") + 1:] == [
        "input_audio_buffer.speech_started", *END, "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed", "conversation.item.added", "conversation.item.done",
        "conversation.item.input_audio_transcription.completed"]
    response = scene.last("response.done")["response"]
    assert (response["status"], response["status_details"]["reason"]) == ("cancelled", "turn_detected")


async def test_what_cannot_have_been_played_was_not_heard() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 60)
    scene.ahead = 4 * FRAME
    await scene.frames(10)
    scene.tell("response.cancel")
    assert scene.session.cuts == [(1, 10 * FRAME - 4 * FRAME - FRAME)]


async def test_a_clients_truncation_stops_the_reply_and_only_lowers_what_was_heard() -> None:
    for said_ms, heard in ((60, 3 * FRAME), (5000, 9 * FRAME)):
        scene = Scene(in_events=True)
        scene.session.say(1, 60)
        await scene.frames(10)
        item = scene.last("response.output_item.added")["item"]["id"]
        scene.tell("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=said_ms)
        await scene.frames(3)
        assert scene.session.cuts == [(1, heard)]
        assert scene.types("conversation.item.truncated") == ["conversation.item.truncated"]
        assert scene.last("conversation.item.truncated")["audio_end_ms"] == min(said_ms, 200)
        scene.tell("conversation.item.retrieve", item_id=item)
        content = scene.last("conversation.item.retrieved")["item"]["content"]
        assert content == [{"type": "output_audio", "transcript": "x" * (heard // FRAME)}]


async def test_a_truncation_after_all_was_sent_cuts_what_is_remembered() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 10)
    await scene.frames(15)
    item = scene.last("response.output_item.done")["item"]["id"]
    scene.tell("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=100)
    assert scene.session.cuts == [(1, 5 * FRAME)]
    scene.tell("conversation.item.retrieve", item_id=item)
    assert scene.last("conversation.item.retrieved")["item"]["content"][0]["transcript"] == "xxxxx"
    assert scene.types("response.done") == ["response.done"]


async def test_a_late_truncation_does_not_touch_the_reply_that_came_after() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 10)
    await scene.frames(15)
    item = scene.last("response.output_item.done")["item"]["id"]
    scene.session.say(2, 30)
    await scene.frames(5)
    scene.tell("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=100)
    await scene.frames(40)
    assert scene.session.cuts == []
    assert scene.last("conversation.item.truncated")["item_id"] == item
    assert scene.last("response.done")["response"]["status"] == "completed"


async def test_speech_that_outlasts_the_reply_is_told_when_the_floor_is_free() -> None:
    scene = Scene(guard_ms=100_000, in_events=True)  # an onset only ducks
    scene.session.say(1, 10)
    await scene.frames(5)
    scene.onset()
    await scene.frames(3)
    assert scene.types("input_audio_buffer.speech_started") == []
    await scene.frames(10)
    assert scene.types("response.done", "input_audio_buffer.speech_started") == [
        "response.done", "input_audio_buffer.speech_started"]


async def test_a_failed_reply_ends_after_what_was_made_of_it() -> None:
    scene = Scene(in_events=True)
    scene.session.say(1, 5, last=False)
    scene.session.end(1, TurnStatus.FAILED, "xxxxx")
    await scene.frames(2)
    assert scene.types("response.done") == []
    await scene.frames(5)
    assert scene.last("response.done")["response"]["status"] == "failed"
    scene.session.emit(ReplyText(Fence("s", 0, 2, 0), 0, "y", True))
    scene.session.end(2, TurnStatus.FAILED, "y")
    await scene.frames(1)
    assert scene.types("response.done") == ["response.done"] * 2


async def test_a_reply_in_turn_mode_that_never_ends_is_cut_as_incomplete() -> None:
    scene = Scene(in_events=True, wishes={"audio": {"input": {"turn_detection": None}}})
    scene.tell("response.create")
    scene.session.say(1, 5, last=False)
    await scene.frames(2)
    for _ in range(REPLY_WITHIN // (100 * FRAME)):
        scene.call.media.feed(np.zeros(100 * FRAME, np.int16))
    await scene.frames(2)
    response = scene.last("response.done")["response"]
    assert (response["status"], response["status_details"]["reason"]) == ("incomplete", "max_output_tokens")
    assert not scene.call.media.awaits_time


steps = st.one_of(
    st.tuples(st.just("frames"), st.integers(1, 30)), st.tuples(st.just("say"), st.integers(1, 40)),
    st.tuples(st.just("part"), st.integers(1, 20)), st.tuples(st.just("decide"), st.booleans()),
    st.tuples(st.just("truncate"), st.integers(0, 900)),
    st.sampled_from([("onset", 0), ("offset", 0), ("cancel", 0), ("fail", 0), ("words", 0), ("ask", 0)]))


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=40))
def test_in_any_order_responses_follow_each_other_and_hold_their_own_audio(order: list[tuple[str, int]]) -> None:
    asyncio.run(_any_order(order))


async def _any_order(order: list[tuple[str, int]]) -> None:
    scene = Scene(in_events=True)
    session, turn, speaking = scene.session, 0, False
    for what, much in order:
        open_turn = turn if turn and turn not in session.ended else None
        match what:
            case "frames":
                await scene.frames(much)
            case "say" | "part" if turn < 30:
                if open_turn is None:
                    turn += 1
                session.say(turn, much, last=what == "say")
            case "decide":
                session.decide(Choice.LISTEN, turn, yields=bool(much))
            case "onset" if not speaking:
                scene.onset()
                speaking = True
                await scene.frames(1)
            case "offset" if speaking:
                scene.offset()
                speaking = False
                await scene.frames(1)
            case "cancel":
                scene.tell("response.cancel")
            case "ask":
                scene.tell("response.create", response={"metadata": {"number": str(turn)}})
            case "truncate" if "response.output_item.added" in scene.types():
                item = scene.last("response.output_item.added")["item"]["id"]
                scene.tell("conversation.item.truncate", item_id=item, content_index=0, audio_end_ms=much)
            case "fail" if open_turn is not None:
                session.end(open_turn, TurnStatus.FAILED, session.text[open_turn])
            case "words":
                session.emit(CallerWords("s", 0, "words", True, 0, 0))
            case _:
                pass
    if turn and turn not in session.ended:
        session.end(turn, TurnStatus.FAILED, session.text[turn])
    if speaking:
        scene.offset()
    for _ in range(4):
        await scene.frames(60)
        session.decide()
    while scene.call.media.speaking:
        await scene.frames(50)
    check(scene.transport.sent)
    scene.call.media.gone("hung up")
    await scene.call.wait_closed()


def check(sent: list[dict[str, Any]]) -> None:
    """One response at a time, each ended once, and audio only of the one that is open."""
    open_one: str | None = None
    ends: Counter[str] = Counter()
    for event in sent:
        match event["type"]:
            case "response.created":
                assert open_one is None
                open_one = event["response"]["id"]
            case "response.done":
                assert open_one == event["response"]["id"]
                ends[event["response"]["id"]] += 1
                open_one = None
            case "audio" | "response.output_audio_transcript.delta":
                assert event["response_id"] == open_one
            case "error":
                raise AssertionError(event)
    assert open_one is None
    assert set(ends.values()) <= {1}
