"""An application of LiveKit Agents without a room: a microphone that a test feeds, an ear that has heard all it got."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from livekit import rtc
from livekit.agents import Agent, AgentSession, llm
from livekit.agents.types import APIConnectOptions
from livekit.agents.voice import io

from duologue.plugins.livekit import RealtimeModel
from tests.harness.realtime_server import RealtimeServer, realtime_server

LIMIT_S = 20.0


class Microphone(io.AudioInput):
    """Gives what was spoken into it."""

    def __init__(self) -> None:
        super().__init__(label="microphone")
        self._frames: asyncio.Queue[rtc.AudioFrame] = asyncio.Queue()

    def speak(self, ms: int, rate: int = 24_000) -> None:
        """Say something."""
        samples = rate * ms // 1000
        self._frames.put_nowait(rtc.AudioFrame(np.full(samples, 900, np.int16).tobytes(), rate, 1, samples))

    async def __anext__(self) -> rtc.AudioFrame:
        return await self._frames.get()


class Ear(io.AudioOutput):
    """Hears each frame at once; ``segments`` are its replies, in samples at 24 kHz."""

    def __init__(self) -> None:
        super().__init__(label="ear", capabilities=io.AudioOutputCapabilities(pause=False), sample_rate=24_000)
        self.segments: list[int] = []
        self._open = False

    async def capture_frame(self, frame: rtc.AudioFrame) -> None:
        await super().capture_frame(frame)
        if not self._open:
            self._open = True
            self.segments.append(0)
            self.on_playback_started(created_at=0.0)
        self.segments[-1] += frame.samples_per_channel

    def flush(self) -> None:
        super().flush()
        self._end(interrupted=False)

    def clear_buffer(self) -> None:
        super().flush()
        self._end(interrupted=True)

    def _end(self, *, interrupted: bool) -> None:
        if self._open:
            self._open = False
            self.on_playback_finished(playback_position=self.segments[-1] / 24_000, interrupted=interrupted)


class House:
    """An application and the scripted server that it talks to."""

    def __init__(self, server: RealtimeServer, session: AgentSession[None], microphone: Microphone, ear: Ear) -> None:
        self.server = server
        self.session = session
        self.microphone = microphone
        self.ear = ear
        self.user_states: list[str] = []
        session.on("user_state_changed", lambda event: self.user_states.append(event.new_state))

    def said(self, role: str) -> list[llm.ChatMessage]:
        """What one side has said, as the application knows it."""
        return [item for item in self.session.history.items if isinstance(item, llm.ChatMessage) and item.role == role]

    async def until(self, met: Callable[[], object]) -> None:
        """Wait until ``met``. Raises ``TimeoutError`` if it never is."""
        async with asyncio.timeout(LIMIT_S):
            while not met():  # noqa: ASYNC110 - the framework has no event for all that is waited for
                await asyncio.sleep(0.01)


@asynccontextmanager
async def house(agent: Agent | None = None, **options: Any) -> AsyncIterator[House]:
    """Start an application; ``options`` are the model's."""
    async with realtime_server() as (server, url):
        model = RealtimeModel(url, conn_options=APIConnectOptions(max_retry=8, retry_interval=0.2), **options)
        session: AgentSession[None] = AgentSession(llm=model, aec_warmup_duration=None)
        microphone, ear = Microphone(), Ear()
        session.input.audio, session.output.audio = microphone, ear
        await session.start(agent or Agent(instructions="Be kind."))
        try:
            await server.until_sent("session.update", 2)
            yield House(server, session, microphone, ear)
        finally:
            await session.aclose()
            await model.aclose()
