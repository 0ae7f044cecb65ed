"""A host of calls for tests of the HTTP face: it answers what it is told to, or holds real echo calls."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from duologue.agent.http.host import PartHealth, Upgrade, new_call_id
from duologue.agent.speech import Speech
from duologue.agent.transports.base import Telephone
from duologue.agent.transports.webrtc import WebRtcTransport
from duologue.engine import Pcm


class FakeSpeech:
    """Yields ``sounds``, then raises ``fault``, if it has one."""

    sample_rate = 16_000

    def __init__(self, *sounds: Pcm, fault: Exception | None = None) -> None:
        self.sounds = sounds
        self.fault = fault
        self.closed = asyncio.Event()

    async def sound(self) -> AsyncIterator[Pcm]:
        for pcm in self.sounds:
            yield pcm
        if self.fault is not None:
            raise self.fault

    async def close(self) -> None:
        self.closed.set()


class FakeHost:
    """Takes every offer, or raises ``refuse``."""

    def __init__(self) -> None:
        self.models: Sequence[str] = ["embedded"]
        self.offers: list[tuple[str, Mapping[str, Any] | None, str | None]] = []
        self.live: set[str] = set()
        self.telephones: dict[str, Telephone] = {}
        self.refuse: Exception | None = None
        self.parts = {"thinker": PartHealth(True), "codec": PartHealth(True), "media": PartHealth(True)}
        self.spoken: list[tuple[str, str, float, str | None]] = []
        self.speech: FakeSpeech = FakeSpeech()
        self.closed = 0
        self._idle = asyncio.Event()

    async def offer(self, sdp: str, session: Mapping[str, Any] | None, ticket: str | None) -> tuple[str, str]:
        if self.refuse is not None:
            raise self.refuse
        self.offers.append((sdp, session, ticket))
        call_id = new_call_id()
        self.live.add(call_id)
        return call_id, "v=0\r\n"

    async def converse(self, upgrade: Upgrade, session: Mapping[str, Any], ticket: str | None) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.offers.append(("", session, ticket))
        socket, _drop = await upgrade()
        await socket.send_str("hello")

    def speak(self, text: str, voice: str, pace: float, ticket: str | None) -> Speech:
        if self.refuse is not None:
            raise self.refuse
        self.spoken.append((text, voice, pace, ticket))
        return cast(Speech, self.speech)

    async def hang_up(self, call_id: str) -> bool:
        if call_id not in self.live:
            return False
        self.live.discard(call_id)
        self._idle.set()
        return True

    def telephone(self, call_id: str) -> Telephone | None:
        if call_id not in self.live:
            raise KeyError(call_id)
        return self.telephones.get(call_id)

    def health(self) -> Mapping[str, PartHealth]:
        return self.parts

    async def drain(self) -> None:
        while self.live:
            self._idle.clear()
            await self._idle.wait()

    async def close(self) -> None:
        self.closed += 1
        self.live.clear()


class EchoCall:
    """Says what it hears."""

    output_rate = 16_000

    def __init__(self) -> None:
        self._heard: deque[int] = deque(maxlen=16_000)
        self.messages: list[str] = []
        self.up = asyncio.Event()
        self.keys: list[str] = []
        self.reasons: list[str] = []

    def feed(self, pcm: Pcm, concealed: int = 0) -> None:
        self._heard.extend(pcm.tolist())

    def pull(self) -> Pcm:
        count = min(len(self._heard), 320)
        frame = np.zeros(320, np.int16)
        frame[:count] = [self._heard.popleft() for _ in range(count)]
        return frame

    def receive(self, message: str) -> None:
        self.messages.append(message)

    def dtmf(self, key: str) -> None:
        self.keys.append(key)

    def connected(self) -> None:
        self.up.set()

    def gone(self, reason: str) -> None:
        self.reasons.append(reason)


class EchoHost(FakeHost):
    """Makes a real WebRTC call of every offer."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, tuple[WebRtcTransport, EchoCall]] = {}

    async def offer(self, sdp: str, session: Mapping[str, Any] | None, ticket: str | None) -> tuple[str, str]:
        call_id = new_call_id()
        transport, call = WebRtcTransport(call_id), EchoCall()
        answer = await transport.accept(sdp, call)
        self.calls[call_id] = (transport, call)
        return call_id, answer

    async def hang_up(self, call_id: str) -> bool:
        if call_id not in self.calls:
            return False
        await self.calls.pop(call_id)[0].close()
        return True
