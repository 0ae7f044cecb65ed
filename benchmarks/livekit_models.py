"""A LiveKit agent whose model is Duologue in one of two other ways, measured beside our plug-in by benchmarks.doors.

``--how stock``: LiveKit's own client of the OpenAI Realtime protocol. ``--how duplex``: LiveKit's adapter for models
that decide about turns themselves, over the same socket.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from livekit import rtc
from livekit.agents import llm
from livekit.agents.llm._realtime import openai
from livekit.agents.llm.duplex import (
    DuplexAudioFrame,
    DuplexCapabilities,
    DuplexModel,
    DuplexOutputTranscriptDelta,
    DuplexSession,
)
from livekit.agents.types import NOT_GIVEN, NotGivenOr

from tests.harness.livekit_agent import RETRIES, arguments, run

_RATE = 24_000


class Duplex(DuplexModel):
    """As much of a duplex model as a spoken conversation needs."""

    def __init__(self, url: str) -> None:
        super().__init__(capabilities=DuplexCapabilities(user_transcription=True, auto_tool_reply_generation=True))
        self.url = f"{url}/v1/realtime"

    def session(self) -> DuplexSession[Any]:
        """Open a session."""
        return Socket(self)

    async def aclose(self) -> None:
        """Nothing is kept."""


class Socket(DuplexSession[Any]):
    """One session."""

    def __init__(self, model: Duplex) -> None:
        super().__init__(model)
        self._url = model.url
        self._heard: asyncio.Queue[DuplexAudioFrame] = asyncio.Queue()
        self._spoken: asyncio.Queue[bytes] = asyncio.Queue()
        self._talking = asyncio.ensure_future(self._talk())

    async def _talk(self) -> None:
        async with aiohttp.ClientSession() as http, http.ws_connect(self._url) as socket:
            sending = asyncio.ensure_future(self._send(socket))
            async for message in socket:
                self._take(json.loads(message.data))
            sending.cancel()

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            audio = base64.b64encode(await self._spoken.get()).decode()
            await socket.send_json({"type": "input_audio_buffer.append", "audio": audio})

    def _take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "response.output_audio.delta":
                pcm = base64.b64decode(event["delta"])
                self._heard.put_nowait(DuplexAudioFrame(rtc.AudioFrame(pcm, _RATE, 1, len(pcm) // 2)))
            case "response.output_audio_transcript.delta":
                self.emit("transcript_delta", DuplexOutputTranscriptDelta(event["delta"]))
            case "conversation.item.input_audio_transcription.completed":
                self.emit("input_audio_transcription_completed", llm.InputTranscriptionCompleted(
                    item_id=event["item_id"], transcript=event["transcript"], is_final=True))

    async def _frames(self) -> AsyncIterator[DuplexAudioFrame]:
        while True:
            yield await self._heard.get()

    @property
    def audio_stream(self) -> AsyncIterator[DuplexAudioFrame]:
        """What the server says."""
        return self._frames()

    @property
    def tools(self) -> llm.ToolContext:
        """None."""
        return llm.ToolContext.empty()

    def push_audio(self, frame: rtc.AudioFrame) -> None:
        """Say something; a room's audio comes at the rate that the protocol has."""
        self._spoken.put_nowait(bytes(frame.data))

    async def aclose(self) -> None:
        """Hang up."""
        await super().aclose()
        self._talking.cancel()

    async def _update_instructions(self, instructions: str) -> None: ...

    async def _append_items(self, items: list[llm.ChatItem]) -> None: ...

    async def _update_tools(self, tools: list[llm.Tool]) -> None: ...

    def _update_options(self, *, tool_choice: NotGivenOr[llm.ToolChoice | None] = NOT_GIVEN) -> None: ...


def main() -> None:
    parser = arguments()
    parser.add_argument("--how", choices=["stock", "duplex"], required=True)
    given = parser.parse_args()

    async def be() -> None:
        model: llm.RealtimeModel
        if given.how == "duplex":
            model = llm.DuplexRealtimeAdapter(Duplex(given.model_url))
        else:
            model = openai.RealtimeModel(base_url=f"{given.model_url}/v1", model="embedded", api_key="none",
                                         modalities=["audio"], conn_options=RETRIES)
        await run(given.room_url, given.token, model)

    asyncio.run(be())


if __name__ == "__main__":
    main()
