"""Servers, networks, callers that go away: the call goes on when they are back, or ends, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest
from livekit import api

from tests.agent.test_call import ScriptedSession
from tests.agent.transports.livekit.house import answer, dispatch_to, house_of, humming, loudness, until, worker
from tests.harness.livekit import RoomCaller, livekit_server_behind, room_call
from tests.harness.recording import Recording
from tests.harness.severed import Line
from tests.harness.sound import RATE, spans

# More tries, as calls from a browser have: two SDKs find a killed server again when they do, in real time.
pytestmark = [pytest.mark.component, pytest.mark.flaky(reruns=2)]

AUDIBLE = 0.1
UNIT_S = 0.08


async def heard(session: ScriptedSession) -> None:
    """Wait until the caller is heard."""
    await until(lambda: loudness(session) > AUDIBLE, "the caller being heard")


async def answered(caller: RoomCaller, after: int) -> Recording:
    """Wait until the agent was heard after ``after`` for a second."""

    def met(recording: Recording) -> bool:
        found = spans(recording.agent[after:])
        return sum(span.end - span.start for span in found) > RATE * 9 // 10

    return await caller.until(met, "a reply")


async def test_a_killed_server_that_comes_back_has_the_same_call_go_on(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        async with room_call(server, "killed", humming(120)) as caller:
            session = await house.call()
            await heard(session)
            await server.kill()
            await until(lambda: caller.happened == ["reconnecting"], "a lost server")
            await asyncio.sleep(1)
            units = len(session.units)
            await server.start()
            await until(lambda: caller.happened == ["reconnecting", "reconnected"], "a server that is back")
            await until(lambda: len(session.units) > units + 20 and loudness(session) > AUDIBLE, "the caller again")
            now = caller.samples
            answer(session, 1, 1.0)
            await answered(caller, now)
            assert len(house.engine.sessions) == house.engine.held == 1
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_while_the_server_is_away_the_calls_time_stands_still(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house), room_call(server, "away", humming(120)) as caller:
        session = await house.call()
        await heard(session)
        now = caller.samples
        answer(session, 1, 3.0)
        await answered(caller, now)
        await server.kill()
        await until(lambda: caller.happened == ["reconnecting"], "a lost server")
        await asyncio.sleep(0.5)
        units = len(session.units)
        await asyncio.sleep(1.5)
        assert len(session.units) == units
        await server.start()
        await until(lambda: len(session.units) > units, "time that goes on")
        # The rest of the reply was kept, but for what was on its way when the server died, and what was said before the
        # caller had the agent's track again: up to a second and a half of these three.
        await caller.until(lambda recording: bool(recording.of_type("output_audio_buffer.stopped")), "the reply's end")
        recording = await caller.until_sample(caller.samples + RATE // 2)
        sounding = sum(span.end - span.start for span in spans(recording.agent[now:]))
        assert RATE < sounding <= 3.1 * RATE


async def test_five_seconds_without_a_network_are_a_gap_in_the_call(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house), room_call(server, "held", humming(120)) as caller:
        session = await house.call()
        await heard(session)
        server.hold()
        await until(lambda: loudness(session) < 0.01, "silence")
        units = len(session.units)
        await asyncio.sleep(4)
        # Units keep coming: a caller who is not heard is a caller who is silent.
        assert abs(len(session.units) - units - 4 / UNIT_S) <= 6
        server.release()
        await heard(session)
        now = caller.samples
        # What the held server kept comes in a burst, and jitter buffers take their time to get over it: a longer reply.
        answer(session, 1, 3.0)
        await answered(caller, now)
        assert caller.happened == []
        assert house.engine.held == 1


async def test_a_network_that_loses_everything_for_five_seconds_gives_the_same_call_back(tmp_path: Path) -> None:
    line = Line()
    async with (
        livekit_server_behind(tmp_path, line) as server,
        worker(server) as house,
        room_call(server, "severed", humming(120)) as caller,
    ):
        session = await house.call()
        await heard(session)
        line.lose()
        await until(lambda: loudness(session) < 0.01, "silence")
        await asyncio.sleep(5)
        line.find()
        await heard(session)
        now = caller.samples
        answer(session, 1, 3.0)
        await answered(caller, now)
        assert len(house.engine.sessions) == house.engine.held == 1


async def test_a_network_that_is_lost_for_good_ends_the_call_and_frees_it(tmp_path: Path) -> None:
    # The SDK itself would look for the room for ever: nothing is refused, everything is swallowed.
    line = Line()
    async with (
        livekit_server_behind(tmp_path, line) as server,
        worker(server, away_wait_s=2) as house,
        room_call(server, "gone", humming(120)),
    ):
        await heard(await house.call())
        line.lose()
        try:
            await until(lambda: house.engine.held == 0, "the end of the call", limit_s=60)
        finally:
            line.find()  # the SDK would wait for it


async def test_a_server_that_is_shut_down_ends_its_calls_and_the_next_server_is_served(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        async with room_call(server, "over", humming(60)) as caller:
            await heard(await house.call())
            await server.shut_down()
            await until(lambda: house.engine.held == 0, "the end of the call")
            # The worker hears of it on a socket of its own.
            await until(lambda: not house.door.health().up, "a worker that knows")
            assert "not registered" in house.door.health().detail
            await until(lambda: caller.happened == ["disconnected"], "the end at the caller's")
        await server.start()
        await until(lambda: house.door.health().up, "a registered worker")
        async with room_call(server, "next", humming(60)):
            await heard(await house.call(1))


async def test_a_caller_who_is_lost_and_does_not_come_back_is_not_waited_for_long(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path, rejoin_wait_s=0.5) as (server, house),
        room_call(server, "lost", humming(60)) as caller,
    ):
        session = await house.call()
        await heard(session)
        # Every participant is gone after a restart; this one stays away.
        await server.kill()
        await caller.leave()
        await server.start()
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_a_room_to_which_nobody_comes_is_left(tmp_path: Path) -> None:
    async with house_of(tmp_path, agent_name="duo", caller_wait_s=1) as (server, house), server.api() as service:
        await service.room.create_room(api.CreateRoomRequest(name="empty", agents=[dispatch_to("duo")]))
        await house.call()
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_a_caller_may_come_long_after_the_agent(tmp_path: Path) -> None:
    async with house_of(tmp_path, agent_name="duo") as (server, house), server.api() as service:
        await service.room.create_room(api.CreateRoomRequest(name="early", agents=[dispatch_to("duo")]))
        session = await house.call()
        await asyncio.sleep(1)
        assert session.units == []
        async with room_call(server, "early", humming(60)):
            await heard(session)


async def test_a_call_whose_media_fail_ends_alone(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path) as (server, house),
        room_call(server, "good", humming(60)),
    ):
        good = await house.call()
        await heard(good)
        async with room_call(server, "bad", humming(60)):
            bad = await house.call(1)
            await heard(bad)
            bad.append = _fail  # type: ignore[method-assign, assignment]
            await until(lambda: bad.closed == 1, "the end of the bad call")
        units = len(good.units)
        await until(lambda: len(good.units) > units + 20, "the good call going on")
        assert good.closed == 0
        assert np.all([unit.index == number for number, unit in enumerate(good.units)])


def _fail(_unit: object) -> None:
    raise RuntimeError("a fault of this call")
