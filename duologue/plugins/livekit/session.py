"""One conversation of a LiveKit agent with a Duologue server."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from livekit import rtc
from livekit.agents import APIConnectionError, llm, utils
from livekit.agents.llm._realtime import openai
from livekit.agents.types import NOT_GIVEN, NotGivenOr
from openai.types.realtime import ConversationItemCreateEvent, ConversationItemDeleteEvent

from duologue.plugins.livekit.history import told
from duologue.plugins.livekit.pacing import Valve
from duologue.plugins.livekit.speech import Signal, Speech
from duologue.plugins.livekit.voicing import Voicing
from duologue.plugins.livekit.words import Words

if TYPE_CHECKING:
    from duologue.plugins.livekit.model import RealtimeModel

CHUNKS_PER_S = 50
"""The caller's audio goes out in pieces of 20 ms. LiveKit's own of 100 ms would hold an onset back for as long."""



REPLIES_KEPT = 4
"""Replies whose words are kept: the one that is spoken, and what may be written ahead."""

ASKED_WITHIN_S = 1.0
"""The framework asks for the answer to what was typed when the server has confirmed it: a way there and back."""


class RealtimeSession(openai.RealtimeSession):
    """LiveKit's own session for the OpenAI Realtime protocol, with what a server that owns the turns knows better.

    * A reply is given to the framework as it is heard, sound and text (``Voicing``): one that the server pauses is
      silent within some 100 ms and goes on when the server's does; of one that is cut it knows what was heard.
    * Speech that has cut a reply is told when that reply is over (``Speech``).
    * While the server owns the turns it answers a tool's result by itself, and what was typed before it is asked to.
    * A conversation of before, as after a lost connection, is told to the model and not said to it: it would answer.
    * Audio goes to a server that is there; what was said into a lost connection is not sent after it.

    Whatever else is asked of it is LiveKit's work. Its private names that are used here are held by tests against the
    version that pyproject.toml pins.
    """

    def __init__(self, model: RealtimeModel, *, turn_detection_disabled: bool) -> None:
        self._speech = Speech()
        self._valve = Valve()
        """The newest reply's."""
        self._words: OrderedDict[str, Words] = OrderedDict()
        """By the items whose words they are."""
        self._typed = False
        """Something was said to the model in writing, and the framework is about to ask for the answer."""
        self._early: llm.GenerationCreatedEvent | None = None
        """That answer, before it was asked for."""
        self._connected = False
        super().__init__(model, turn_detection_disabled=turn_detection_disabled)
        self._bstream = utils.audio.AudioByteStream(openai.SAMPLE_RATE, openai.NUM_CHANNELS,
                                                    samples_per_channel=openai.SAMPLE_RATE // CHUNKS_PER_S)
        self._capabilities = replace(self._capabilities,
                                     auto_tool_reply_generation=self._capabilities.turn_detection)

    # --- to the server --------------------------------------------------------------------------------------

    def _create_session_update_event(self) -> dict[str, Any]:
        """Ask for what LiveKit asks for; sent at each connection. Which model and voice there are is the server's."""
        event = super()._create_session_update_event()
        plain = event if isinstance(event, dict) else event.model_dump(by_alias=True, exclude_unset=True)
        del plain["session"]["model"]
        if not self._opts.voice:
            del plain["session"]["audio"]["output"]["voice"]
        return plain

    def _create_ws_url_and_headers(self) -> tuple[str, dict[str, str]]:
        _, headers = super()._create_ws_url_and_headers()
        if not self._opts.api_key:
            del headers["Authorization"]
        return self._opts.base_url, headers

    def _create_update_chat_ctx_events(
        self, chat_ctx: llm.ChatContext,
    ) -> list[ConversationItemCreateEvent | ConversationItemDeleteEvent]:
        """Make one note of what was said before; a message alone, or a tool's result, is said to the model now."""
        events = super()._create_update_chat_ctx_events(chat_ctx)
        fresh = {event.item.id for event in events if isinstance(event, ConversationItemCreateEvent)}
        past = [item for item in chat_ctx.items if item.id in fresh]
        if sum(isinstance(item, llm.ChatMessage) for item in past) < 2:
            self._typed = any(isinstance(item, llm.ChatMessage) and item.role == "user" for item in past)
            return events
        for item in past:
            self._remote_chat_ctx.insert(self._remote_chat_ctx.tail_id, item)
        note = ConversationItemCreateEvent.model_validate({
            "type": "conversation.item.create", "event_id": utils.shortuuid("chat_ctx_create_"),
            "item": {"id": utils.shortuuid("item_"), "type": "message", "role": "system",
                     "content": [{"type": "input_text", "text": told(past)}]}})
        return [*(event for event in events if isinstance(event, ConversationItemDeleteEvent)), note]

    def generate_reply(
        self, *, instructions: NotGivenOr[str] = NOT_GIVEN, tool_choice: NotGivenOr[llm.ToolChoice] = NOT_GIVEN,
        tools: NotGivenOr[list[llm.Tool]] = NOT_GIVEN,
    ) -> asyncio.Future[llm.GenerationCreatedEvent]:
        """Ask for a reply. What was typed may have been answered already: then that is it."""
        self._typed = False
        early, self._early = self._early, None
        if early is None:
            return super().generate_reply(instructions=instructions, tool_choice=tool_choice, tools=tools)
        asked: asyncio.Future[llm.GenerationCreatedEvent] = asyncio.get_running_loop().create_future()
        early.user_initiated = True
        asked.set_result(early)
        return asked

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        """Send the caller's audio, if a server is there to hear it."""
        if self._connected:
            super().push_audio(frame)

    # --- from the server ------------------------------------------------------------------------------------

    def emit(self, event: Any, *args: Any) -> None:
        """Pass an event on to the framework, when it is due."""
        match event:
            case "openai_server_event_received":
                super().emit(event, *args)
                self._follow(args[0])
            case "input_speech_started":
                if self._replying:
                    self._valve.hold()
                self._tell(self._speech.heard("started", replying=self._replying))
            case "input_speech_stopped":
                self._tell(self._speech.heard("stopped", replying=self._replying))
            case "generation_created":
                self._tell(self._speech.reply_begins())
                self._valve = Valve()
                args[0].message_stream = self._voiced(args[0].message_stream, self._valve)
                if self._typed and not args[0].user_initiated:
                    self._early = args[0]
                    asyncio.get_running_loop().call_later(ASKED_WITHIN_S, self._not_asked, args[0])
                else:
                    super().emit(event, *args)
            case "metrics_collected":
                super().emit(event, *args)
                if not self._replying and (signals := self._speech.reply_is_over()):
                    self._tell(signals)
                    self._valve.shut()  # not before: of a reply that had simply ended there would be nothing to cut
            case "error" if isinstance(args[0].error, APIConnectionError):
                self._connected = False
                self._valve.release()  # what the lost server had sent of its reply is played
                self._tell(self._speech.lost())
                super().emit(event, *args)
            case _:
                super().emit(event, *args)

    def _not_asked(self, reply: llm.GenerationCreatedEvent) -> None:
        if self._early is reply:
            self._early, self._typed = None, False
            super().emit("generation_created", reply)

    @property
    def _replying(self) -> bool:
        return self._current_generation is not None

    def _follow(self, body: dict[str, Any]) -> None:
        self._connected = True
        match body:
            case {"type": "duologue.state", "state": "paused"}:
                self._valve.hold()
            case {"type": "duologue.state"}:
                self._valve.release()
            case {"type": "duologue.reply.words", "item_id": str(item_id), "words": words}:
                self._words_of(item_id).place(words)

    def _tell(self, signals: list[Signal]) -> None:
        for signal in signals:
            if signal == "started":
                super().emit("input_speech_started", llm.InputSpeechStartedEvent())
            else:
                super().emit("input_speech_stopped", llm.InputSpeechStoppedEvent(
                    user_transcription_enabled=self._realtime_model.capabilities.user_transcription))

    async def _voiced(self, messages: AsyncIterable[llm.MessageGeneration],
                      valve: Valve) -> AsyncIterator[llm.MessageGeneration]:
        async for message in messages:
            yield Voicing(message, self._words_of(message.message_id), valve).message()

    def _words_of(self, item_id: str) -> Words:
        """A reply's words; those of replies long over, or that were never told, are let go."""
        if item_id not in self._words:
            self._words[item_id] = Words()
            while len(self._words) > REPLIES_KEPT:
                self._words.popitem(last=False)
        return self._words[item_id]
