"""A caller on an OpenAI-Realtime WebSocket: OpenAI's own Python client, a microphone, and ears that play what comes.

It does what such clients do: it plays the reply's audio as it comes, throws away what it has not played when it is told
that speech has started, and says then how much of the reply was played.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import numpy as np
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.realtime import RealtimeSessionCreateRequestParam as Session

from tests.harness.microphone import Microphone
from tests.harness.sound import RATE, Sound, from_pcm, resample, to_pcm

WIRE_RATE = 24_000
"""Sample rate, in Hz, of the audio both ways: GA clients know no other."""

FRAME = WIRE_RATE // 50
PIECE = 5
"""Frames of a piece the client sends: 100 ms, as LiveKit's does."""


class SocketCaller:
    """One call; positions are samples at ``WIRE_RATE`` since its microphone was opened."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self.connection = connection
        self.events: list[dict[str, Any]] = []
        self.places: list[int] = []
        """Where on the microphone's timeline each event came."""
        self.now = 0
        self._waiting: deque[tuple[str, np.ndarray[tuple[int], np.dtype[np.int16]]]] = deque()
        self._heard: list[np.ndarray[tuple[int], np.dtype[np.int16]]] = []
        self._played: dict[str, int] = {}
        self._news = asyncio.Event()

    @property
    def heard(self) -> Sound:
        """What was played so far, silence included."""
        return from_pcm(np.concatenate(self._heard)) if self._heard else np.zeros(0, np.float32)

    def played_ms(self, item_id: str) -> int:
        """How much of an item was played."""
        return self._played.get(item_id, 0) * 1000 // WIRE_RATE

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The events of a type."""
        return [event for event in self.events if event["type"] == kind]

    async def until(self, kind: str, count: int = 1, limit_s: float = 60) -> dict[str, Any]:
        """Wait for the ``count``-th event of a type; an error from the server is a failure."""
        async with asyncio.timeout(limit_s):
            while len(self.of(kind)) < count:
                self._news.clear()
                await self._news.wait()
        return self.of(kind)[count - 1]

    async def read(self) -> None:
        """Take what the server sends, until it is over."""
        async for event in self.connection:
            said: dict[str, Any] = event.model_dump()
            self.events.append(said)
            self.places.append(self.now)
            if said["type"] == "response.output_audio.delta":
                self._waiting.append((said["item_id"], np.frombuffer(base64.b64decode(said["delta"]), np.int16)))
            elif said["type"] == "input_audio_buffer.speech_started":
                await self._interrupted()
            self._news.set()

    async def _interrupted(self) -> None:
        if not self._waiting:
            return
        item_id = self._waiting[0][0]
        self._waiting.clear()
        await self.connection.conversation.item.truncate(
            item_id=item_id, content_index=0, audio_end_ms=self.played_ms(item_id))

    async def speak(self, microphone: Microphone) -> None:
        """Be on the telephone, so to say, until cancelled: send what the microphone hears and play what comes."""
        loop = asyncio.get_running_loop()
        begin, frames = loop.time(), 0
        while True:
            if frames % PIECE == 0:
                start = frames * FRAME * RATE // WIRE_RATE
                sound = microphone.read(start, start + PIECE * FRAME * RATE // WIRE_RATE)
                await self.append(sound)
            self._play()
            frames += 1
            await asyncio.sleep(max(0.0, begin + frames * 0.02 - loop.time()))

    async def append(self, sound: Sound) -> None:
        """Send sound at 48 kHz."""
        pcm = to_pcm(resample(sound, RATE, WIRE_RATE))
        await self.connection.input_audio_buffer.append(audio=base64.b64encode(pcm.tobytes()).decode())

    def _play(self) -> None:
        frame, filled = np.zeros(FRAME, np.int16), 0
        while filled < FRAME and self._waiting:
            item_id, pcm = self._waiting.popleft()
            count = min(FRAME - filled, pcm.size)
            frame[filled:filled + count] = pcm[:count]
            filled += count
            self._played[item_id] = self._played.get(item_id, 0) + count
            if count < pcm.size:
                self._waiting.appendleft((item_id, pcm[count:]))
        self._heard.append(frame)
        self.now += FRAME


@asynccontextmanager
async def socket_call(url: str, microphone: Microphone | None = None, **session: Any) -> AsyncIterator[SocketCaller]:
    """Call ``url`` with OpenAI's client; the microphone is opened once the session is as it should be."""
    client = AsyncOpenAI(api_key="any", base_url=f"{url}/v1")
    async with client.realtime.connect(model="embedded") as connection:
        caller = SocketCaller(connection)
        tasks = [asyncio.create_task(caller.read())]
        try:
            await connection.session.update(session=cast(Session, {"type": "realtime", **session}))
            await caller.until("session.updated")
            if microphone is not None:
                tasks.append(asyncio.create_task(caller.speak(microphone)))
            yield caller
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
