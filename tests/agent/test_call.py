"""A whole call on a virtual clock: scripted ear, scripted engine, real playout, units, conversation and projection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.call import Call
from duologue.agent.config import BargeInConfig, ConversationConfig
from duologue.agent.media.activity import Offset, Onset, Probability, VoiceEvent
from duologue.engine import (
    Brief,
    CallerText,
    CallerWords,
    Choice,
    Decision,
    EngineEvent,
    Fence,
    Item,
    Overrun,
    Pcm,
    PipelineConfig,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    Unit,
)

PIPELINE = PipelineConfig.model_validate({
    "name": "scripted", "unit_ms": 80, "output_rate": 16000,
    "stages": [{"name": "thinker", "role": "thinker", "model": "none", "process": "one"}]})
FRAME = 320


class ScriptedEar:
    """Says that speech begins and ends where the test says so."""

    def __init__(self) -> None:
        self.now = 0
        self.next: list[VoiceEvent] = []

    def push(self, pcm: Pcm) -> list[VoiceEvent]:
        self.now += pcm.size
        events, self.next = self.next, []
        return [Probability(0.9 if events else 0.1, self.now), *events]


class ScriptedSession:
    """An engine session that emits what the test says, behind the same fence as the real one."""

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.briefs: list[Brief] = []
        self.items: list[Item] = []
        self.asked: list[str] = []
        self.cuts: list[tuple[int, int]] = []
        self.epoch = 0
        self.closed = 0
        self.text: dict[int, str] = {}
        self.samples: dict[int, int] = {}
        self.ended: set[int] = set()
        self.full = False
        self._queue: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

    def append(self, unit: Unit) -> None:
        if self.full:
            raise Overrun
        self.units.append(unit)

    def reopen(self, brief: Brief) -> None:
        if self.units:
            raise ValueError("too late")
        self.briefs.append(brief)

    def inject(self, item: Item) -> None:
        self.items.append(item)

    def respond(self, instructions: str = "") -> None:
        self.asked.append(instructions)

    def interrupt(self, turn: int, heard_samples: int) -> str:
        self.epoch += 1
        self.cuts.append((turn, heard_samples))
        heard = self.text.get(turn, "")[: heard_samples // FRAME]
        if turn not in self.ended and turn in self.text:
            self.end(turn, TurnStatus.INTERRUPTED, heard)
        return heard

    async def outputs(self) -> AsyncIterator[EngineEvent]:
        while (event := await self._queue.get()) is not None:
            yield event

    async def close(self) -> None:
        self.closed += 1
        self._queue.put_nowait(None)

    # --- the script's side ----------------------------------------------------------------------------------

    def emit(self, event: EngineEvent) -> None:
        self._queue.put_nowait(event)

    def decide(self, choice: Choice = Choice.LISTEN, turn: int = 0, yields: bool = False) -> None:
        self.emit(Decision("s", self.epoch, turn, len(self.units) - 1, choice, yields))

    def say(self, turn: int, frames: int, last: bool = True) -> None:
        """Say ``frames`` frames of audio, of which each sample's value is the turn, and a letter for each."""
        text = "x" * frames
        fence = Fence("s", self.epoch, turn, 0)
        start, first = len(self.text.get(turn, "")), self.samples.get(turn, 0)
        self.text[turn] = self.text.get(turn, "") + text
        self.samples[turn] = first + frames * FRAME
        self.emit(ReplyText(fence, start, text, last))
        self.emit(ReplyAudio(fence, first, np.full(frames * FRAME, 1000 * turn, np.int16), (), last))
        if last:
            self.end(turn, TurnStatus.DONE, self.text[turn])

    def end(self, turn: int, status: TurnStatus, text: str) -> None:
        if turn not in self.ended:
            self.ended.add(turn)
            self.emit(TurnEnd("s", self.epoch, turn, status, text))


class FakeTransport:
    """Keeps what it is told to send."""

    name = "fake"

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.closed = 0

    def send(self, message: str) -> None:
        self.sent.append(json.loads(message))

    async def close(self) -> None:
        self.closed += 1


class Scene:
    """A connected call with its clock: one ``frame`` is 20 ms both ways.

    With ``in_events`` the client gets the reply among the events, and plays it ``ahead`` samples later than it can.
    """

    def __init__(self, guard_ms: int = 0, *, in_events: bool = False, wishes: Mapping[str, Any] | None = None) -> None:
        self.ear = ScriptedEar()
        self.session = ScriptedSession()
        self.transport = FakeTransport()
        config = ConversationConfig(barge_in=BargeInConfig(echo_guard_ms=guard_ms))
        self.ended = 0
        self.in_events = in_events
        self.ahead = 0
        self.call = Call("rtc_test", self.session, PIPELINE, config, self.ear, wishes=wishes, on_end=self._on_end)
        self.call.start(self.transport)
        self.call.media.connected(voice_in_events=in_events)
        self.call.media.receive('{"type":"session.update","session":{"duologue":{"events":true}}}')
        self.played: list[Pcm] = []

    def _on_end(self, _call: Call) -> None:
        self.ended += 1

    async def frames(self, count: int) -> Pcm:
        """Let ``count`` frames pass; gives what the caller heard."""
        heard = []
        for _ in range(count):
            await settle()
            self.call.media.feed(np.zeros(FRAME, np.int16))
            heard.append(self.call.media.speak(self.ahead, self._spoken) if self.in_events else self.call.media.pull())
        await settle()
        self.played += heard
        return np.concatenate(heard) if heard else np.zeros(0, np.int16)

    def _spoken(self, response_id: str, item_id: str, pcm: Pcm) -> None:
        self.transport.sent.append({"type": "audio", "response_id": response_id, "item_id": item_id, "pcm": pcm})

    def tell(self, kind: str, **fields: object) -> None:
        """Send an event as the client."""
        self.call.media.receive(json.dumps({"type": kind, **fields}))

    def onset(self) -> None:
        self.ear.next = [Onset(self.ear.now)]

    def offset(self) -> None:
        self.ear.next = [Offset(self.ear.now)]

    def types(self, *wanted: str) -> list[str]:
        return [event["type"] for event in self.transport.sent if not wanted or event["type"] in wanted]

    def last(self, kind: str) -> dict[str, Any]:
        return [event for event in self.transport.sent if event["type"] == kind][-1]


async def settle() -> None:
    """Let the call's tasks take what is there for them."""
    for _ in range(4):
        await asyncio.sleep(0)


async def test_every_80_ms_of_sound_is_a_unit() -> None:
    scene = Scene()
    await scene.frames(10)
    assert [unit.index for unit in scene.session.units] == [0, 1]
    assert all(unit.pcm.size == 1280 for unit in scene.session.units)


async def test_a_reply_is_played_to_the_sample_and_ends_once() -> None:
    scene = Scene()
    scene.session.say(1, 5)
    heard = await scene.frames(8)
    assert np.count_nonzero(heard == 1000) == 5 * FRAME
    assert scene.types("response.done", "output_audio_buffer.stopped") == [
        "response.done", "output_audio_buffer.stopped"]
    assert scene.last("response.done")["response"]["status"] == "completed"


async def test_an_onset_silences_the_reply_within_one_frame() -> None:
    scene = Scene()
    scene.session.say(1, 50)
    await scene.frames(10)
    scene.onset()
    heard = await scene.frames(5)
    assert not np.any(heard[FRAME:])


async def test_an_interruption_cuts_the_journal_at_what_was_played() -> None:
    scene = Scene()
    scene.session.say(1, 50)
    await scene.frames(10)
    scene.onset()
    await scene.frames(1)
    played = np.count_nonzero(np.concatenate(scene.played))
    scene.session.decide(yields=True)
    await scene.frames(10)
    assert scene.session.cuts == [(1, scene.session.cuts[0][1])]
    assert abs(scene.session.cuts[0][1] - played) <= FRAME
    assert not np.any(np.concatenate(scene.played[-10:]))
    assert scene.types("response.done").count("response.done") == 1
    assert scene.last("conversation.item.truncated")["audio_end_ms"] == scene.session.cuts[0][1] // 16


async def test_a_backchannel_lets_the_reply_go_on_where_it_paused() -> None:
    scene = Scene()
    scene.session.say(1, 60)
    await scene.frames(10)
    scene.onset()
    await scene.frames(15)
    scene.offset()
    await scene.frames(1)
    scene.session.decide()
    await scene.frames(120)
    heard = np.concatenate(scene.played)
    assert scene.session.cuts == []
    assert scene.call.media.tally.false_alarms == 1
    assert np.count_nonzero(heard == 1000) > 60 * FRAME - 3 * FRAME  # all of it, but for the ramps of the pause
    assert scene.last("response.done")["response"]["status"] == "completed"


async def test_units_say_when_the_reply_could_be_heard() -> None:
    scene = Scene()
    await scene.frames(8)
    scene.session.say(1, 8)
    await scene.frames(40)
    audible = [unit.agent_audible for unit in scene.session.units]
    assert audible[:2] == [0, 0]
    assert 1280 in audible
    assert audible[-1] == 0


async def test_a_failed_reply_ends_with_what_was_made_of_it() -> None:
    scene = Scene()
    scene.session.say(1, 5, last=False)
    scene.session.end(1, TurnStatus.FAILED, "xxxxx")
    await scene.frames(10)
    assert scene.last("response.done")["response"]["status"] == "failed"
    assert "output_audio_buffer.stopped" in scene.types()
    scene.session.say(2, 3)
    assert np.count_nonzero(await scene.frames(6) == 2000) == 3 * FRAME


async def test_typed_text_reaches_the_thinker_and_bad_text_is_refused() -> None:
    scene = Scene()
    scene.call.media.receive('{"type":"conversation.item.create","item":{"type":"message","role":"user",'
                       '"content":[{"type":"input_text","text":" hello "}]}}')
    scene.call.media.receive('{"type":"conversation.item.create","event_id":"e1","item":{"type":"message","role":"user"}}')
    scene.call.media.receive("nonsense")
    assert scene.session.items == [CallerText("hello")]
    assert scene.types("error") == ["error", "error"]
    await scene.frames(4)
    assert len(scene.session.units) == 1


async def test_a_telephones_keys_are_told_as_long_as_the_call_lives() -> None:
    scene = Scene()
    scene.call.media.dtmf("4")
    scene.call.media.dtmf("#")
    scene.call.media.gone("hung up")
    scene.call.media.dtmf("5")
    told = [event for event in scene.transport.sent if event["type"] == "input_audio_buffer.dtmf_event_received"]
    assert [event["event"] for event in told] == ["4", "#"]
    assert all(isinstance(event["received_at"], int) for event in told)


async def test_the_callers_words_and_latency_are_told() -> None:
    scene = Scene()
    scene.onset()
    await scene.frames(10)
    scene.offset()
    await scene.frames(1)
    scene.session.emit(CallerWords("s", 0, "hello", True, 0, 2))
    await scene.frames(20)
    scene.session.say(1, 2)
    await scene.frames(4)
    assert scene.last("conversation.item.input_audio_transcription.completed")["transcript"] == "hello"
    assert 400 <= scene.last("duologue.latency")["ms"] <= 480


async def test_a_client_may_stop_the_reply() -> None:
    scene = Scene()
    scene.session.say(1, 50)
    await scene.frames(5)
    scene.call.media.receive('{"type":"response.cancel"}')
    scene.call.media.receive('{"type":"output_audio_buffer.clear"}')
    heard = await scene.frames(5)
    assert len(scene.session.cuts) == 1
    assert not np.any(heard[FRAME:])
    assert scene.types("error") == []


async def test_an_engine_that_cannot_keep_up_ends_this_call_with_a_reason() -> None:
    scene = Scene()
    scene.session.full = True
    await scene.frames(8)
    await scene.call.wait_closed()
    assert scene.last("error")["error"]["code"] == "server_overloaded"
    assert (scene.session.closed, scene.transport.closed, scene.ended) == (1, 1, 1)


async def test_a_hang_up_gives_everything_back_once() -> None:
    scene = Scene()
    scene.session.say(1, 50)
    await scene.frames(3)
    scene.call.media.gone("hung up")
    scene.call.media.gone("lost")
    scene.call.hang_up("deleted")
    await scene.call.wait_closed()
    await scene.frames(3)
    assert (scene.session.closed, scene.transport.closed, scene.ended) == (1, 1, 1)
    assert scene.call.outcome == "hung up"


steps = st.one_of(
    st.tuples(st.just("frames"), st.integers(1, 40)), st.tuples(st.just("say"), st.integers(1, 60)),
    st.tuples(st.just("part"), st.integers(1, 20)), st.tuples(st.just("decide"), st.booleans()),
    st.sampled_from([("onset", 0), ("offset", 0), ("cancel", 0), ("fail", 0), ("words", 0)]))


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=40))
def test_in_any_order_of_events_every_reply_ends_once_and_nothing_old_is_played(order: list[tuple[str, int]]) -> None:
    asyncio.run(_any_order(order))


async def _any_order(order: list[tuple[str, int]]) -> None:
    scene = Scene()
    session = scene.session
    turn = 0
    speaking = False
    for what, much in order:
        cut_before = {each for each, _ in session.cuts}
        open_turn = turn if turn and turn not in session.ended else None
        match what:
            case "frames":
                heard = await scene.frames(much)
                for old in cut_before:
                    # The last frame may still hold the few milliseconds in which a cut reply fades out.
                    assert np.count_nonzero(heard[FRAME:] == 1000 * old) == 0
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
                scene.call.media.receive('{"type":"response.cancel"}')
            case "fail" if open_turn is not None:
                session.end(open_turn, TurnStatus.FAILED, session.text[open_turn])
            case "words":
                session.emit(CallerWords("s", 0, "words", True, 0, 0))
            case _:
                pass
    if turn and turn not in session.ended:
        session.end(turn, TurnStatus.DONE, session.text[turn])
        session.emit(ReplyAudio(Fence("s", session.epoch, turn, 9), session.samples[turn], np.zeros(0, np.int16), (),
                                True))
    await scene.frames(1)
    created = [event["response"]["id"] for event in scene.transport.sent if event["type"] == "response.created"]
    done = [event["response"]["id"] for event in scene.transport.sent if event["type"] == "response.done"]
    assert sorted(created) == sorted(done)
    scene.call.media.gone("hung up")
    await scene.call.wait_closed()
    assert (session.closed, scene.transport.closed, scene.ended) == (1, 1, 1)


async def test_a_call_cancelled_at_any_await_of_its_end_leaks_nothing() -> None:
    for steps_taken in range(1, 6):
        scene = Scene()
        await scene.frames(2)
        scene.call.media.gone("hung up")
        for _ in range(steps_taken):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await settle()
        assert (scene.session.closed, scene.transport.closed, scene.ended) == (1, 1, 1), steps_taken
