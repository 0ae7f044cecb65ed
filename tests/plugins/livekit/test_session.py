"""Applications of LiveKit Agents whose model is a (scripted) Duologue server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from livekit.agents import Agent, RunContext, function_tool, llm

from duologue.plugins.livekit import RealtimeModel
from tests.plugins.livekit.house import House, house

pytestmark = pytest.mark.component


async def speaking(own: House, number: int = 1, ms: int = 4000) -> None:
    """Have the server speak, until some of it was heard."""
    await own.server.state("thinking")
    await own.server.begin(number)
    await own.server.text(number, "one two three four")
    await own.server.send("duologue.reply.words", item_id=f"item_{number}", words=[
        {"start": start, "end": end, "start_ms": at * 40, "end_ms": at * 40 + 40}
        for at, (start, end) in enumerate([(0, 3), (4, 7), (8, 13), (14, 18)])])
    await own.server.state("speaking")
    await own.server.audio(number, ms)
    await own.until(lambda: own.ear.segments and own.ear.segments[-1] >= 24_000 * min(ms, 200) // 1000)


async def understood(own: House, text: str) -> None:
    """Have the server understand the caller."""
    await own.server.item({"id": "item_user", "type": "message", "role": "user", "content": []})
    await own.server.send("conversation.item.input_audio_transcription.completed", item_id="item_user",
                          content_index=0, transcript=text, usage={"type": "duration", "seconds": 1.0})


async def test_what_both_sides_say_reaches_the_other_and_the_application() -> None:
    async with house() as own:
        own.microphone.speak(300)
        await own.server.until(lambda: own.server.heard == 7200)
        await own.server.speech("started")
        await own.server.speech("stopped")
        await understood(own, "good evening")
        await speaking(own, ms=300)
        await own.server.end(1)
        await own.until(lambda: own.said("assistant"))
        assert [message.text_content for message in own.said("user")] == ["good evening"]
        assert [(message.text_content, message.interrupted) for message in own.said("assistant")] == [
            ("one two three four", False)]
        assert own.ear.segments == [7200]
        assert own.user_states == ["speaking", "listening"]


async def test_a_nod_pauses_the_reply_and_costs_nothing_of_it() -> None:
    async with house() as own:
        await speaking(own, ms=1000)
        await own.server.state("paused")  # of a nod the server tells no more
        await asyncio.sleep(0.2)
        before = own.ear.segments[-1]
        await asyncio.sleep(0.3)
        assert own.ear.segments[-1] == before
        await own.server.state("speaking")
        await own.server.end(1)
        await own.until(lambda: own.said("assistant"))
        assert own.ear.segments == [24_000]
        assert not own.said("assistant")[0].interrupted
        assert own.user_states == []
        assert own.server.of("response.cancel") == own.server.of("conversation.item.truncate") == []


async def test_a_cut_reply_is_truncated_once_where_it_was_heard_to_and_not_cancelled_again() -> None:
    async with house() as own:
        await speaking(own)
        await own.server.state("paused")
        await asyncio.sleep(0.3)  # all that was handed on has been heard
        await own.server.speech("started")
        await asyncio.sleep(0.1)  # the network is slow
        await own.server.end(1, "cancelled", "turn_detected")
        await own.server.state("listening")
        told = await own.server.until_sent("conversation.item.truncate")
        assert told["item_id"] == "item_1"
        assert told["audio_end_ms"] == own.ear.segments[0] * 1000 // 24_000 < 1000
        await own.until(lambda: own.said("assistant"))
        assert own.said("assistant")[0].interrupted
        await own.server.speech("stopped")
        await own.until(lambda: own.user_states == ["speaking", "listening"])

        await speaking(own, number=2, ms=100)
        await own.server.end(2)
        await own.until(lambda: len(own.said("assistant")) == 2)
        assert len(own.server.of("conversation.item.truncate")) == 1
        # A cancel would meet whatever the server says by then.
        assert own.server.of("response.cancel") == []
        assert own.ear.segments[1] == 2400


async def test_of_a_cut_reply_the_application_knows_the_words_that_were_heard() -> None:
    text = "one two six ten one two six ten one two"
    async with house() as own:
        await own.server.state("thinking")
        await own.server.send("duologue.reply.words", item_id="item_1", words=[
            {"start": at * 4, "end": at * 4 + 3, "start_ms": 300 * at, "end_ms": 300 * at + 200} for at in range(10)])
        await own.server.begin(1)
        await own.server.text(1, text)
        await own.server.state("speaking")
        await own.server.audio(1, 3000)
        await own.until(lambda: own.ear.segments and own.ear.segments[-1] >= 24_000 * 6 // 10)
        await own.server.state("paused")
        await own.server.speech("started")
        await own.server.end(1, "cancelled", "turn_detected")
        await own.server.state("listening")
        await own.until(lambda: own.said("assistant"))
        heard_ms = own.ear.segments[0] * 1000 / 24_000
        words = sum(heard_ms >= 300 * at + 150 for at in range(10))
        assert own.said("assistant")[0].text_content == text[:4 * words]


async def test_a_reply_that_the_application_interrupts_is_cancelled_and_is_no_speech_of_the_callers() -> None:
    async with house() as own:
        await speaking(own)
        await own.session.interrupt()
        await own.server.until_sent("response.cancel")
        await own.server.end(1, "cancelled", "client_cancelled")
        await own.server.state("listening")
        await own.server.until_sent("conversation.item.truncate")
        await own.server.speech("started")
        await own.until(lambda: own.user_states)
        assert own.user_states == ["speaking"]
        assert own.said("assistant")[0].interrupted


async def test_a_reply_that_begins_before_the_caller_has_ended_is_not_held_back() -> None:
    async with house() as own:
        await own.server.speech("started")
        await own.until(lambda: own.user_states == ["speaking"])
        await speaking(own, ms=200)
        await own.server.end(1)
        await own.until(lambda: own.said("assistant"))
        assert own.user_states == ["speaking", "listening"]


class Weather(Agent):
    def __init__(self) -> None:
        super().__init__(instructions="Tell the weather.")
        self.asked: list[str] = []

    @function_tool
    async def get_weather(self, context: RunContext[Any], city: str) -> str:
        """Say what the weather is like.

        Args:
            city: where
        """
        self.asked.append(city)
        return "sunny"


async def test_a_tools_result_goes_back_once_and_the_server_answers_by_itself() -> None:
    agent = Weather()
    async with house(agent) as own:
        tools = [tool for event in own.server.of("session.update") for tool in event["session"].get("tools", ())]
        assert [tool["name"] for tool in tools] == ["get_weather"]
        await own.server.call(1, "get_weather", {"city": "Paris"})
        created = await own.server.until_sent("conversation.item.create")
        assert {key: created["item"][key] for key in ("type", "call_id", "output")} == {
            "type": "function_call_output", "call_id": "call_1", "output": "sunny"}
        assert agent.asked == ["Paris"]
        await speaking(own, number=2, ms=100)
        await own.server.end(2)
        await own.until(lambda: own.said("assistant"))
        assert own.server.of("response.create") == own.server.of("response.cancel") == []
        assert len(own.server.of("conversation.item.create")) == 1


async def test_after_a_lost_connection_the_conversation_goes_on_and_stale_audio_is_not_sent() -> None:
    async with house(Weather()) as own:
        await own.server.speech("started")
        await own.until(lambda: own.user_states == ["speaking"])
        await understood(own, "good evening")
        await speaking(own, ms=200)
        await own.server.end(1)
        await own.until(lambda: own.said("assistant"))
        await speaking(own, number=2)
        heard, sent = own.server.heard, len(own.server.received)
        own.server.drop()
        await own.until(lambda: own.session.current_speech is None)
        await own.server.until(lambda: len(own.server.headers) == 2)
        await own.server.until(lambda: any(event["type"] == "conversation.item.create"
                                           for event in own.server.received[sent:]))
        again = own.server.received[sent:]
        assert own.server.queries == [{"duplex": "1"}] * 2
        assert again[0]["session"]["instructions"] == "Tell the weather."
        assert again[1]["session"]["tools"]
        # As a note: what a caller types is answered.
        assert again[2]["item"]["role"] == "system"
        assert again[2]["item"]["content"][0]["text"] == (
            "The conversation so far:\nuser: good evening\nassistant: one two three four")
        assert own.server.heard == heard
        own.microphone.speak(100)
        await own.server.until(lambda: own.server.heard == heard + 2400)
        await speaking(own, number=3, ms=100)
        await own.server.end(3)
        await own.until(lambda: own.said("assistant")[-1].id == "item_3")


async def test_model_and_voice_are_the_servers_unless_one_is_asked_for() -> None:
    async with house() as own:
        session = own.server.of("session.update")[0]["session"]
        assert "model" not in session
        assert "voice" not in session["audio"]["output"]
    async with house(voice="rms") as own:
        assert own.server.of("session.update")[0]["session"]["audio"]["output"]["voice"] == "rms"


def test_an_address_without_a_scheme_is_refused_with_an_example() -> None:
    with pytest.raises(ValueError, match="http://127"):
        RealtimeModel("localhost:8080")


async def test_a_key_is_sent_only_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "somebody else's")
    async with house() as own:
        assert "Authorization" not in own.server.headers[0]
    async with house(api_key="ours") as own:
        assert own.server.headers[0]["Authorization"] == "Bearer ours"


async def test_a_reply_that_was_asked_for_is_the_servers_answer() -> None:
    async with house() as own:
        handle = own.session.generate_reply(instructions="Greet the caller.")
        asked = await own.server.until_sent("response.create")
        assert "Greet the caller." in asked["response"]["instructions"]
        await own.server.begin(1, metadata=asked["response"]["metadata"])
        await own.server.text(1, "good day")
        await own.server.audio(1, 100)
        await own.server.end(1)
        await handle
        items = [item for item in handle.chat_items if isinstance(item, llm.ChatMessage)]
        assert [item.text_content for item in items] == ["good day"]


async def test_what_the_application_asks_in_the_callers_name_is_said_to_the_model() -> None:
    async with house() as own:
        own.session.generate_reply(user_input="what time is it")
        created = await own.server.until_sent("conversation.item.create")
        assert created["item"]["role"] == "user"
        assert created["item"]["content"] == [{"type": "input_text", "text": "what time is it"}]
        await own.server.until_sent("response.create")


async def test_a_conversation_of_before_is_told_and_not_said_again() -> None:
    past = llm.ChatContext()
    past.add_message(role="user", content="my name is Ada")
    past.add_message(role="assistant", content="hello Ada")
    async with house(Agent(instructions="Be kind.", chat_ctx=past)) as own:
        created = await own.server.until_sent("conversation.item.create")
        assert created["item"]["role"] == "system"
        assert created["item"]["content"][0]["text"].endswith("user: my name is Ada\nassistant: hello Ada")
        own.session.generate_reply(user_input="what is my name")
        asked = await own.server.until_sent("conversation.item.create", 2)
        assert asked["item"]["content"][0]["text"] == "what is my name"


async def test_an_answer_that_comes_before_it_is_asked_for_is_the_answer() -> None:
    async with house() as own:
        own.server.answers_at_once = True
        handle = own.session.generate_reply(user_input="what time is it")
        await own.server.until_sent("conversation.item.create")
        await own.server.text(1, "tea time")
        await own.server.audio(1, 100)
        await own.server.end(1)
        await handle
        assert [message.text_content for message in own.said("user")] == ["what time is it"]
        assert [message.text_content for message in own.said("assistant")] == ["tea time"]
        assert own.server.of("response.create") == []
        assert own.ear.segments == [2400]
