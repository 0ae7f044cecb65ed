"""What becomes of an INVITE when the engine is full, going down or soon to have room; and of who falls silent.

Callers here are our own user agent; sipp and baresip try the same endpoint elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest

from duologue.agent.transports.sip.calls import Ended, SipCall
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.media.negotiation import LocalMedia, Negotiator
from duologue.agent.transports.sip.user_agent import UserAgent
from duologue.engine import Refused
from tests.agent.transports.peer import Recorder, RecordingCall
from tests.agent.transports.sip.house import House, house

pytestmark = pytest.mark.component


class Caller(Recorder):
    """The other side of a call: signalling only, nobody sends RTP."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[str] = []
        self.ended: Ended | None = None

    async def on_offer(self, sdp: str) -> str:
        raise AssertionError("nobody offers anything here")

    def on_answered(self, sdp: str) -> None:
        self.answers.append(sdp)
        self.changed()

    def on_digits(self, digits: str) -> None:
        raise AssertionError("nobody presses anything here")

    def on_ended(self, ended: Ended) -> None:
        self.ended = ended
        self.changed()

    async def answered(self) -> None:
        await self.until(lambda: bool(self.answers))

    async def outcome(self) -> Ended:
        await self.until(lambda: self.ended is not None)
        assert self.ended is not None
        return self.ended


@asynccontextmanager
async def telephone() -> AsyncIterator[UserAgent]:
    async def nobody_home(call: SipCall) -> None:
        call.refuse(404)

    agent = UserAgent(SipConfig.model_validate({"listen": [{"port": 0}]}), nobody_home)
    await agent.start()
    try:
        yield agent
    finally:
        await agent.close()


OFFER = Negotiator(LocalMedia("127.0.0.1", 40_000)).offer()


def ring_up(agent: UserAgent, made: House, offer: str = OFFER) -> Caller:
    caller = Caller()
    agent.dial(f"sip:agent@127.0.0.1:{made.port}", offer, caller)
    return caller


@pytest.mark.parametrize(("reason", "status"), [
    ("capacity", 486), ("queue_full", 486), ("draining", 503), ("stage_down", 503)])
async def test_a_refusal_is_a_busy_line_or_a_server_to_be_passed_by(
        reason: Literal["capacity", "queue_full", "draining", "stage_down"], status: int) -> None:
    async with house() as (made, _), telephone() as agent:
        made.refuse = Refused(reason, "no", eta_s=7.2)
        assert (await ring_up(agent, made).outcome()).status == status
        assert made.calls == []


async def test_a_full_engine_is_not_asked_for_a_place_that_nobody_will_come_back_for() -> None:
    async with house() as (made, _), telephone() as agent:
        made.has_room = False
        assert (await ring_up(agent, made).outcome()).status == 486
        assert made.asked == []


async def test_a_caller_may_hear_it_ring_until_there_is_room() -> None:
    async with house(queue_s=30) as (made, _), telephone() as agent:
        made.has_room, made.refuse = False, Refused("capacity", "full", position=1, ticket="number one")
        caller = ring_up(agent, made)
        await made.until(lambda: len(made.asked) == 2)
        assert caller.ended is None
        made.refuse = None
        await caller.answered()
        assert made.asked == [None, "number one", "number one"]


async def test_who_gives_up_while_it_rings_is_not_tried_again() -> None:
    async with house(queue_s=30) as (made, _), telephone() as agent:
        made.has_room, made.refuse = False, Refused("capacity", "full", position=1, ticket="number one")
        caller = Caller()
        call = agent.dial(f"sip:agent@127.0.0.1:{made.port}", OFFER, caller)
        await made.until(lambda: len(made.asked) == 1)
        made.refuse = None
        call.hang_up()
        await caller.outcome()
        await asyncio.sleep(1.5)
        assert (made.asked, made.calls) == ([None], [])


async def test_what_cannot_be_spoken_is_not_acceptable_and_takes_no_port() -> None:
    async with house(codecs=["pcmu"], ports=(24_100, 24_101)) as (made, _), telephone() as agent:
        opus_only = Negotiator(LocalMedia("127.0.0.1", 40_000, codecs=("opus",))).offer()
        for _ in range(2):
            assert (await ring_up(agent, made, opus_only).outcome()).status == 488
        caller = ring_up(agent, made)  # the one pair of ports is free
        await caller.answered()
        assert (await ring_up(agent, made).outcome()).status == 503  # and now it is not


async def test_a_caller_of_whom_nothing_is_heard_is_lost_once() -> None:
    async with house(timeout_s=0.5) as (made, _), telephone() as agent:
        caller = ring_up(agent, made)
        assert (await caller.outcome()).reason == "hung up"  # by us
        assert made.call.reasons == ["lost"]
        assert made.call.connections == 1


async def test_a_caller_who_hangs_up_leaves_nothing_behind() -> None:
    async with house(ports=(24_100, 24_101)) as (made, _), telephone() as agent:
        for _ in range(3):
            caller = Caller()
            call = agent.dial(f"sip:agent@127.0.0.1:{made.port}", OFFER, caller)
            await caller.answered()
            call.hang_up()
            await made.call.until(lambda: made.call.reasons == ["hung up"])


async def test_the_media_s_fault_ends_its_call_and_no_other() -> None:
    calls: list[RecordingCall] = []

    def make() -> RecordingCall:
        calls.append(RecordingCall())
        return calls[-1]

    async with house(make) as (made, _), telephone() as agent:
        good, bad = ring_up(agent, made), ring_up(agent, made)
        await made.until(lambda: len(made.calls) == 2)

        def broken() -> None:
            raise ZeroDivisionError("a codec's, say")

        calls[1].pull = broken  # type: ignore[assignment]
        await calls[1].until(lambda: calls[1].reasons == ["media fault"])
        await asyncio.wait([asyncio.ensure_future(each.outcome()) for each in (good, bad)],
                           return_when=asyncio.FIRST_COMPLETED)
        pulled = len(calls[0].pulled)
        await asyncio.sleep(0.2)
        assert len(calls[0].pulled) > pulled
        assert calls[0].reasons == []
        assert good.ended is None or bad.ended is None


async def test_a_draining_door_lets_nobody_in_and_keeps_who_is_there() -> None:
    async with house() as (made, door), telephone() as agent:
        caller = ring_up(agent, made)
        await caller.answered()
        door.drain()
        assert (await ring_up(agent, made).outcome()).status == 503
        assert caller.ended is None
        assert door.health().up
        await door.close()
        assert not door.health().up
        assert (await caller.outcome()).reason == "hung up"


@pytest.mark.parametrize("offer", ["v=0\r\n", "v=0 nonsense"])
async def test_what_is_no_offer_is_not_acceptable(offer: str) -> None:
    async with house() as (made, _), telephone() as agent:
        ended = await ring_up(agent, made, offer).outcome()
        assert ended.status == 488
        assert made.calls == []
