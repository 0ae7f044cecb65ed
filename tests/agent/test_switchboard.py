"""Calls are made and ended without leaving anything behind, whatever happens on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest
from aiortc import RTCConfiguration, RTCPeerConnection

from duologue.agent.config import ConversationConfig
from duologue.agent.http.host import PartHealth
from duologue.agent.recording.recorder import Recorder
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.base import CallMedia, EventMedia, Transport
from duologue.agent.transports.sdp import BadOffer
from duologue.engine import Engine, ProcessHealth, Refused, Tool
from tests.agent.recording.test_recording import RememberingSession
from tests.agent.test_call import PIPELINE, FakeTransport, ScriptedSession

pytestmark = pytest.mark.component


class FakeEngine:
    """Opens scripted sessions until it is told to refuse."""

    config = PIPELINE

    def __init__(self, make: Callable[[], ScriptedSession] = ScriptedSession) -> None:
        self._make = make
        self.sessions: list[ScriptedSession] = []
        self.instructions: list[str] = []
        self.refusal: Refused | None = None
        self.processes: dict[str, ProcessHealth] = {}

    def open(self, *, instructions: str = "", voice: str = "", tools: Sequence[Tool] = (), auto_respond: bool = True,
             ticket: str | None = None) -> ScriptedSession:
        if self.refusal is not None:
            raise self.refusal
        self.instructions.append(instructions)
        self.sessions.append(self._make())
        return self.sessions[-1]

    def health(self) -> Mapping[str, ProcessHealth]:
        return self.processes

    async def drain(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        pass

    @property
    def held(self) -> int:
        """Sessions nobody has given back."""
        return sum(session.closed == 0 for session in self.sessions)


def board_of(engine: FakeEngine) -> Switchboard:
    return Switchboard(cast(Engine, engine), ConversationConfig())


async def an_offer() -> str:
    """An offer of somebody who will never send a packet."""
    caller = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    caller.addTransceiver("audio")
    caller.createDataChannel("oai-events")
    await caller.setLocalDescription(await caller.createOffer())
    sdp = caller.localDescription.sdp
    await caller.close()
    return sdp


async def test_an_offer_makes_a_call_that_can_be_hung_up_once() -> None:
    engine = FakeEngine()
    board = board_of(engine)
    call_id, answer = await board.offer(await an_offer(), {"instructions": "be brief"}, None)
    assert "useinbandfec=1" in answer
    assert engine.instructions == ["be brief"]
    assert engine.held == 1
    assert await board.hang_up(call_id)
    assert not await board.hang_up(call_id)
    assert engine.held == 0


async def test_a_bad_offer_never_costs_a_session() -> None:
    engine = FakeEngine()
    with pytest.raises(BadOffer):
        await board_of(engine).offer("v=0 nonsense", None, None)
    assert engine.sessions == []


async def test_a_refusal_is_passed_on() -> None:
    engine = FakeEngine()
    engine.refusal = Refused("capacity", "full", position=2, ticket="t")
    with pytest.raises(Refused) as refused:
        await board_of(engine).offer(await an_offer(), None, None)
    assert refused.value.position == 2


async def test_an_offer_cancelled_at_any_await_leaves_no_session_open() -> None:
    offer = await an_offer()
    finished = steps = 0
    while not finished:
        engine = FakeEngine()
        board = board_of(engine)
        task = asyncio.ensure_future(board.offer(offer, None, None))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
            finished = 1
        except asyncio.CancelledError:
            assert engine.held == 0, f"cancelled after {steps} turns of the loop"
        await board.close()
        assert engine.held == 0
        steps += 1
    assert steps > 1


async def test_closing_ends_every_call() -> None:
    engine = FakeEngine()
    board = board_of(engine)
    for _ in range(3):
        await board.offer(await an_offer(), None, None)
    await asyncio.gather(board.close(), board.drain())
    assert engine.held == 0


async def test_a_door_s_call_is_made_and_ended_like_a_browser_s() -> None:
    engine = FakeEngine()
    board = board_of(engine)
    transport = FakeTransport()

    async def bring_up(media: CallMedia) -> Transport:
        assert media.output_rate == PIPELINE.output_rate
        return transport

    call = await board.take("sip_1", bring_up, wishes={"instructions": "be brief"})
    assert engine.instructions == ["be brief"]
    call.media.gone("hung up")
    await call.wait_closed()
    assert (engine.held, transport.closed) == (0, 1)
    assert not await board.hang_up("sip_1")


async def test_a_transport_that_cannot_be_brought_up_costs_no_session() -> None:
    engine = FakeEngine()

    async def fail(_media: CallMedia) -> Transport:
        raise ConnectionError("nobody answered")

    with pytest.raises(ConnectionError):
        await board_of(engine).take("sip_1", fail)
    assert (len(engine.sessions), engine.held) == (1, 0)


async def test_a_door_is_a_part_of_the_server_and_is_closed_after_its_calls() -> None:
    engine = FakeEngine()
    board = board_of(engine)
    order: list[str] = []

    class Shut(FakeTransport):
        async def close(self) -> None:
            order.append("call")

    class Gate:
        name = "gate"

        def health(self) -> PartHealth:
            return PartHealth(False, "the gate is stuck")

        def drain(self) -> None:
            order.append("drain")

        async def close(self) -> None:
            order.append("gate")

    async def bring_up(_media: CallMedia) -> Transport:
        return Shut()

    board.add(Gate())
    await board.take("gate_1", bring_up)
    assert board.health()["gate"] == PartHealth(False, "the gate is stuck")
    draining = asyncio.ensure_future(board.drain())
    await asyncio.sleep(0)
    assert order == ["drain"]
    await board.close()
    await draining
    assert order == ["drain", "call", "gate"]


def test_a_stage_works_while_one_of_its_replicas_does() -> None:
    engine = FakeEngine()
    board = board_of(engine)
    engine.processes = {"voice/0": ProcessHealth(False, ("talker", "codec"), "signal SIGKILL", None),
                        "voice/1": ProcessHealth(True, ("talker", "codec"), "", 7)}
    assert board.health()["talker"] == PartHealth(True, "signal SIGKILL")
    engine.processes["voice/1"] = ProcessHealth(False, ("talker", "codec"), "starting", None)
    assert board.health()["codec"] == PartHealth(False, "signal SIGKILL; starting")


class FakePhone(FakeTransport):
    """A telephone's transport."""

    def press(self, keys: str) -> None:
        pass

    async def transfer(self, target: str) -> None:
        pass


async def test_a_recorded_call_is_still_a_telephones(tmp_path: Path) -> None:
    phone = FakePhone()

    async def accept(media: EventMedia) -> Transport:
        return phone

    engine = FakeEngine(RememberingSession)
    recorder = Recorder(tmp_path, PIPELINE, ConversationConfig())
    board = Switchboard(cast(Engine, engine), ConversationConfig(), recorder)
    call = await board.take("sip_1", accept)
    assert board.telephone("sip_1") is phone
    call.hang_up("done")
    await call.wait_closed()
    await board.close()
