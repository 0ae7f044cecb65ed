"""Rooms of a real LiveKit server: who gets an agent, who is heard, how a call ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from livekit import api, rtc

from duologue.engine import CallerText, Refused
from tests.agent.test_call import ScriptedSession
from tests.agent.transports.livekit.house import answer, dispatch_to, house_of, humming, loudness, until, worker
from tests.harness.livekit import RoomCaller, room_call
from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.sound import RATE, spans

pytestmark = pytest.mark.component

AUDIBLE = 0.1
"""Loudness of a quarter-scale tone after Opus is about 0.17."""


def sounded(seconds: float) -> Callable[[Recording], bool]:
    """Whether so much of the agent's voice was heard."""

    def met(recording: Recording) -> bool:
        return sum(span.end - span.start for span in spans(recording.agent)) > seconds * RATE

    return met


def upper_band(session: ScriptedSession) -> float:
    """Root mean square of what the engine was given above 4.5 kHz, in the last units."""
    spectrum = np.fft.rfft(np.concatenate([unit.pcm for unit in session.units[-10:]]).astype(float))
    high = spectrum[round(spectrum.size * 4.5 / 8) :]
    return float(np.sqrt(2 * np.sum(np.abs(high) ** 2)) / (2 * spectrum.size))


async def joined(caller: RoomCaller) -> None:
    """Wait until the agent is in the caller's room."""
    await until(lambda: any(guest.kind == rtc.ParticipantKind.PARTICIPANT_KIND_AGENT
                            for guest in caller.room.remote_participants.values()), "an agent in the room")


async def no_agent(caller: RoomCaller, seconds: float = 2.0) -> None:
    await asyncio.sleep(seconds)
    assert not caller.room.remote_participants


async def test_a_new_room_gets_an_agent_that_hears_and_is_heard(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        async with room_call(server, "new", humming(60)) as caller:
            session = await house.call()
            await until(lambda: loudness(session) > AUDIBLE, "the caller being heard")
            await until(lambda: upper_band(session) < 40, "nothing made up for a caller who is on no telephone")
            answer(session, 1, 2.0)
            recording = await caller.until(sounded(1.9), "the whole reply")
            assert recording.of_type("session.created")
            await until(lambda: [state for _, state in caller.states][-2:] == ["speaking", "listening"], "the states")
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_a_unit_comes_for_every_80_ms_of_the_call(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house), room_call(server, "steady", Microphone()) as caller:
        session = await house.call()
        await until(lambda: len(session.units) > 12, "units")
        units, samples = len(session.units), caller.samples
        await asyncio.sleep(4)
        got, passed = len(session.units) - units, (caller.samples - samples) / RATE
        assert abs(got - 12.5 * passed) <= 4
        assert [unit.index for unit in session.units] == list(range(len(session.units)))


async def test_with_a_name_only_who_asks_for_it_gets_an_agent(tmp_path: Path) -> None:
    wishes = json.dumps({"instructions": "be brief", "duologue": {"events": True}})
    async with house_of(tmp_path, agent_name="duo") as (server, house):
        async with room_call(server, "unasked", Microphone()) as stranger:
            await no_agent(stranger)
        async with room_call(server, "asked", humming(30), dispatch=dispatch_to("duo", wishes)) as caller:
            session = await house.call()
            assert house.engine.instructions == ["be brief"]
            answer(session, 1, 1.0)
            recording = await caller.until(sounded(0.9), "a reply")
            assert recording.of_type("duologue.state")


async def test_a_dispatch_through_the_api_brings_an_agent_and_its_deletion_takes_it_away(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path, agent_name="duo") as (server, house),
        server.api() as service,
        room_call(server, "later", Microphone()) as caller,
    ):
        dispatch = await service.agent_dispatch.create_dispatch(
            api.CreateAgentDispatchRequest(agent_name="duo", room="later"))
        await joined(caller)
        for _ in range(50):  # a dispatch ends its jobs only once it lists them
            if any(one.state.jobs for one in await service.agent_dispatch.list_dispatch("later")):
                break
            await asyncio.sleep(0.2)
        await service.agent_dispatch.delete_dispatch(dispatch.id, "later")
        await until(lambda: house.engine.held == 0, "the end of the call")
        await until(lambda: not caller.room.remote_participants, "the agent's leave")


async def test_a_full_engine_leaves_the_job_to_another_worker(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, full), worker(server) as free:
        full.engine.has_room = False
        for number in range(4):
            async with room_call(server, f"room{number}", Microphone()) as caller:
                await joined(caller)
        assert full.engine.sessions == []
        assert len(free.engine.sessions) == 4


async def test_a_room_right_after_a_full_worker_s_last_call_gets_its_agent(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        async with room_call(server, "one", Microphone()) as caller:
            await joined(caller)
            house.engine.has_room = False
            await asyncio.sleep(3)  # longer than from one report of the load to the next
        await until(lambda: house.engine.held == 0, "the end of the call")
        house.engine.has_room = True
        async with room_call(server, "two", Microphone()) as caller:
            await joined(caller)


async def test_a_refused_session_costs_nothing_and_the_next_room_is_served(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        house.engine.refusal = Refused("capacity", "full", position=1, ticket="t")
        async with room_call(server, "refused", Microphone()) as caller:
            await no_agent(caller)
        house.engine.refusal = None
        async with room_call(server, "served", Microphone()) as caller:
            await joined(caller)


async def test_only_the_linked_participant_is_heard_and_another_takes_over_when_it_leaves(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path) as (server, house),
        room_call(server, "both", Microphone(), identity="quiet") as quiet,
    ):
        session = await house.call()
        await joined(quiet)
        async with room_call(server, "both", humming(60), identity="loud") as loud:
            await until(lambda: len(loud.room.remote_participants) == 2, "both callers and the agent")
            await asyncio.sleep(2)
            assert loudness(session) < 0.01
            await loud.send({"type": "response.create"})
            await quiet.leave()
            await until(lambda: loudness(session) > AUDIBLE, "the other being heard")
            answer(session, 1, 1.0)
            await loud.until(sounded(0.9), "a reply")
            assert house.engine.held == 1
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_messages_of_others_than_the_caller_are_ignored(tmp_path: Path) -> None:
    typed = {"type": "conversation.item.create", "item": {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "hello"}]}}
    async with house_of(tmp_path) as (server, house), room_call(server, "typing", Microphone()) as caller:
        session = await house.call()
        await joined(caller)
        async with room_call(server, "typing", Microphone(), identity="guest") as guest:
            await joined(guest)
            await guest.send(typed)
            await asyncio.sleep(1)
            assert session.items == []
            await caller.send(typed)
            await until(lambda: session.items == [CallerText("hello")], "the caller's text")


async def test_our_own_events_are_kept_from_rooms_that_did_not_ask_and_captions_come_all_the_same(
    tmp_path: Path,
) -> None:
    async with house_of(tmp_path) as (server, house), room_call(server, "captions", Microphone()) as caller:
        session = await house.call()
        await caller.until(lambda recording: bool(recording.of_type("session.created")), "the session")
        answer(session, 1, 3.0)
        await caller.until(sounded(0.5), "a reply")
        await caller.send({"type": "response.cancel"})
        await until(lambda: session.cuts != [], "the cut")
        await until(lambda: len([one for one in caller.captions if one.closed]) == 2, "both captions")
        whole, heard = caller.captions
        assert whole.segment == heard.segment
        assert whole.speaker.startswith("agent-")
        assert whole.final
        assert heard.final
        assert whole.text == "x" * 150
        assert heard.text == session.text[1][: session.cuts[0][1] // 320]
        assert 0 < len(heard.text) < len(whole.text)
        assert not [event for event in caller.recording().events if event.type.startswith("duologue.")]
        await caller.send({"type": "session.update", "session": {"duologue": {"events": True}}})
        answer(session, 2, 0.5)
        await caller.until(lambda recording: bool(recording.of_type("duologue.state")), "our own events")


async def test_a_phone_is_spoken_to_once_it_is_answered_its_keys_are_heard_and_it_is_hung_up(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path, link={"rule": "kind", "kind": "sip"}) as (server, house),
        room_call(server, "phone", Microphone(), identity="operator"),
        room_call(server, "phone", humming(60), identity="sip_100", phone=True) as phone,
    ):
        session = await house.call()
        await joined(phone)
        await asyncio.sleep(2)
        assert session.units == []
        await phone.room.local_participant.set_attributes({"sip.callStatus": "active"})
        await until(lambda: loudness(session) > AUDIBLE, "the phone being heard")
        assert upper_band(session) > 80, "a telephone's empty band was left empty"
        for key, code in (("1", 1), ("#", 11)):
            await phone.room.local_participant.publish_dtmf(code=code, digit=key)
        recording = await phone.until(
            lambda recording: len(recording.of_type("input_audio_buffer.dtmf_event_received")) == 2, "both keys")
        keys = [event.body["event"] for event in recording.of_type("input_audio_buffer.dtmf_event_received")]
        assert keys == ["1", "#"]
        call_id, = house.board._calls
        await house.board.hang_up(call_id)
        await asyncio.wait_for(phone.disconnected.wait(), 5)


async def test_a_deleted_room_ends_the_call(tmp_path: Path) -> None:
    async with (
        house_of(tmp_path) as (server, house),
        server.api() as service,
        room_call(server, "doomed", Microphone()) as caller,
    ):
        await house.call()
        await joined(caller)
        await service.room.delete_room(api.DeleteRoomRequest(room="doomed"))
        await until(lambda: house.engine.held == 0, "the end of the call")


async def test_a_drained_worker_takes_no_new_room_and_lets_live_calls_go_on(tmp_path: Path) -> None:
    async with house_of(tmp_path) as (server, house):
        async with room_call(server, "live", humming(60)) as caller:
            session = await house.call()
            await until(lambda: loudness(session) > AUDIBLE, "the caller being heard")
            drained = asyncio.ensure_future(house.board.drain())
            await asyncio.sleep(0.5)
            async with room_call(server, "late", Microphone()) as late:
                await no_agent(late)
            answer(session, 1, 1.0)
            await caller.until(sounded(0.9), "a reply")
            assert not drained.done()
        await asyncio.wait_for(drained, 10)
