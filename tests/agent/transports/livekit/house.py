"""A house with one door: a real LiveKit server, a worker registered with it, calls with a scripted engine behind it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import numpy as np
from livekit.protocol.agent_dispatch import RoomAgentDispatch

from duologue.agent.config import ConversationConfig
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.livekit.config import LiveKitConfig
from duologue.agent.transports.livekit.door import LiveKitDoor
from duologue.engine import Engine, Fence, Load, ReplyAudio, ReplyText, TurnStatus
from tests.agent.test_call import PIPELINE, ScriptedSession
from tests.agent.test_switchboard import FakeEngine
from tests.harness.livekit import KEY, SECRET, LiveKitProcess, livekit_server
from tests.harness.microphone import Microphone
from tests.harness.sound import RATE, Sound

LIMIT_S = 20.0
LEVEL = 0.25


def tone(seconds: float, hz: float = 440.0, rate: int = RATE) -> Sound:
    """A tone at a quarter of full scale."""
    return (LEVEL * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def humming(seconds: float, hz: float = 440.0) -> Microphone:
    """A microphone that hears a tone all the time."""
    return Microphone().play(tone(seconds, hz), "hum")


def answer(session: ScriptedSession, turn: int, seconds: float) -> None:
    """Let the engine give a whole reply: so many seconds of a tone, and ``x`` for each of its letters."""
    pcm = np.round(tone(seconds, rate=PIPELINE.output_rate) * 32767).astype(np.int16)
    fence = Fence("s", session.epoch, turn, 0)
    session.text[turn] = "x" * round(50 * seconds)
    session.emit(ReplyText(fence, 0, session.text[turn], True))
    session.emit(ReplyAudio(fence, 0, pcm, (), True))
    session.end(turn, TurnStatus.DONE, session.text[turn])


def loudness(session: ScriptedSession, units: int = 10) -> float:
    """Root mean square, in parts of full scale, of the last units the engine was given."""
    last = np.concatenate([unit.pcm for unit in session.units[-units:]] or [np.zeros(1, np.int16)]).astype(float)
    return float(np.sqrt(np.mean(last**2))) / 32768


class RoomEngine(FakeEngine):
    """Has room, unless it is told otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.has_room = True

    def load(self) -> Load:
        return Load(0.0, PIPELINE.unit_s, self.held, 0, self.has_room)


class Worker:
    """The house's side of its calls."""

    def __init__(self, server: LiveKitProcess, **options: object) -> None:
        config = LiveKitConfig.model_validate({"url": server.url, "api_key": KEY, "api_secret": SECRET, **options})
        self.engine = RoomEngine()
        self.board = Switchboard(cast(Engine, self.engine), ConversationConfig())
        self.door = LiveKitDoor(config, self.board, self.engine.load, target_load=0.8)
        self.board.add(self.door)

    async def call(self, number: int = 0) -> ScriptedSession:
        """Wait for the engine session of so manieth call."""
        await until(lambda: len(self.engine.sessions) > number, "a call")
        return self.engine.sessions[number]


async def until(met: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Wait until ``met``. Raises ``AssertionError`` if it never is."""
    deadline = time.monotonic() + limit_s
    while not met():
        assert time.monotonic() < deadline, f"not within {limit_s} s: {what}"
        await asyncio.sleep(0.05)


@asynccontextmanager
async def worker(server: LiveKitProcess, **options: object) -> AsyncIterator[Worker]:
    """A worker that is registered; at the end nothing of its calls may be left."""
    house = Worker(server, **options)
    house.door.open()
    try:
        await until(lambda: house.door.health().up, "a registered worker")
        yield house
    finally:
        await house.board.close()
    assert house.engine.held == 0


@asynccontextmanager
async def house_of(folder: Path, **options: object) -> AsyncIterator[tuple[LiveKitProcess, Worker]]:
    """A LiveKit server with one worker."""
    async with livekit_server(folder) as server, worker(server, **options) as house:
        yield server, house


def dispatch_to(name: str, metadata: str = "") -> RoomAgentDispatch:
    """What a token holds that wants an agent by name."""
    return RoomAgentDispatch(agent_name=name, metadata=metadata)
