"""One conversation of a LiveKit agent with a Duologue server."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from livekit import rtc
from livekit.agents import APIConnectionError, llm, utils
from livekit.agents.llm._realtime import openai
from livekit.agents.types import NOT_GIVEN, NotGivenOr

from duologue.plugins.livekit.floor import Floor, Signal
from duologue.plugins.livekit.pacing import Valve, paced

if TYPE_CHECKING:
    from duologue.plugins.livekit.model import RealtimeModel


class RealtimeSession(openai.RealtimeSession):
    """LiveKit's own session for the OpenAI Realtime protocol, with what a server that owns the turns knows better.

    * The caller's speech over a reply reaches the framework when the server has cut the reply, not before (``Floor``);
      until then the reply is paused, as the server's is.
    * The reply is handed on in real time (``paced``), so that a pause or a cut is heard within some 60 ms.
    * While the server owns the turns it answers a tool's result by itself.
    * Audio goes to a server that is there; what was said into a lost connection is not sent after it.

    Whatever else is asked of it is LiveKit's work. Its private names that are used here are held by tests against the
    version that pyproject.toml pins.
    """

    def __init__(self, model: RealtimeModel, *, turn_detection_disabled: bool) -> None:
        self._floor = Floor()
        self._valve = Valve()
        """The newest reply's."""
        self._connected = False
        self._item_id: str | None = None
        """The newest reply's."""
        self._cut_here: str | None = None
        """The newest reply that the application or the framework cut."""
        super().__init__(model, turn_detection_disabled=turn_detection_disabled)
        # LiveKit's pieces of 100 ms would keep the caller's first syllable back for as long.
        self._bstream = utils.audio.AudioByteStream(openai.SAMPLE_RATE, openai.NUM_CHANNELS,
                                                    samples_per_channel=openai.SAMPLE_RATE // 50)
        self._capabilities = replace(self._capabilities,
                                     auto_tool_reply_generation=self._capabilities.turn_detection)

    # --- to the server --------------------------------------------------------------------------------------

    def _create_session_update_event(self) -> dict[str, Any]:
        """Ask for what LiveKit asks for, and for the server's states; sent at each connection."""
        event = super()._create_session_update_event()
        plain = event if isinstance(event, dict) else event.model_dump(by_alias=True, exclude_unset=True)
        plain["session"]["duologue"] = {"events": True}
        return plain

    def _create_ws_url_and_headers(self) -> tuple[str, dict[str, str]]:
        url, headers = super()._create_ws_url_and_headers()
        if not self._opts.api_key:
            del headers["Authorization"]
        return url, headers

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        """Send the caller's audio, if a server is there to hear it."""
        if self._connected:
            super().push_audio(frame)

    def interrupt(self) -> None:
        """Stop the reply."""
        self._cut_here = self._item_id
        super().interrupt()

    def truncate(self, *, message_id: str, modalities: list[Literal["text", "audio"]], audio_end_ms: int,
                 audio_transcript: NotGivenOr[str] = NOT_GIVEN) -> None:
        """Say how much of a reply was heard."""
        self._cut_here = message_id
        super().truncate(message_id=message_id, modalities=modalities, audio_end_ms=audio_end_ms,
                         audio_transcript=audio_transcript)

    # --- from the server ------------------------------------------------------------------------------------

    def emit(self, event: Any, *args: Any) -> None:
        """Pass an event on to the framework, when it is due."""
        match event:
            case "openai_server_event_received":
                super().emit(event, *args)
                self._follow(args[0])
            case "input_speech_started":
                self._tell(self._floor.heard("started"))
            case "input_speech_stopped":
                self._tell(self._floor.heard("stopped"))
            case "generation_created":
                self._tell(self._floor.replying())
                self._valve = Valve()
                args[0].message_stream = _in_real_time(args[0].message_stream, self._valve)
                super().emit(event, *args)
            case "error" if isinstance(args[0].error, APIConnectionError):
                self._connected = False
                self._valve.release()  # what the lost server had sent of its reply is played
                self._tell(self._floor.lost())
                super().emit(event, *args)
            case _:
                super().emit(event, *args)

    def _follow(self, body: dict[str, Any]) -> None:
        self._connected = True
        match body:
            case {"type": "duologue.state", "state": str(state)}:
                self._tell(self._floor.moved(state))
                if self._floor.paused:
                    self._valve.hold()
                else:
                    self._valve.release()
            case {"type": "response.output_item.added", "item": {"type": "message", "id": str(item_id)}}:
                self._item_id = item_id
            case {"type": "conversation.item.truncated", "item_id": item_id} if item_id != self._cut_here:
                self._valve.shut()
                self._tell(self._floor.cut())

    def _tell(self, signals: list[Signal]) -> None:
        for signal in signals:
            if signal == "started":
                super().emit("input_speech_started", llm.InputSpeechStartedEvent())
            else:
                super().emit("input_speech_stopped", llm.InputSpeechStoppedEvent(
                    user_transcription_enabled=self._realtime_model.capabilities.user_transcription))


async def _in_real_time(messages: AsyncIterable[llm.MessageGeneration],
                        valve: Valve) -> AsyncIterator[llm.MessageGeneration]:
    async for message in messages:
        yield replace(message, audio_stream=paced(message.audio_stream, valve))
