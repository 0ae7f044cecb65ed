"""A telephone whose network is lost: the call goes on when it is back in time, and ends when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from duologue.agent.media.g711 import G711
from duologue.engine import INPUT_RATE
from tests.agent.transports.peer import RecordingCall, frames_of, voiced
from tests.agent.transports.sip.house import House, house
from tests.harness.phones import HOST, Phone, caller, packets_of
from tests.harness.severed import Line

pytestmark = pytest.mark.component


def talkative() -> RecordingCall:
    return RecordingCall(frames_of(voiced(60)))


@asynccontextmanager
async def a_call(line: Line, timeout_s: float) -> AsyncIterator[tuple[House, Phone]]:
    """A call whose voice goes through ``line`` both ways; the agent speaks all the time."""
    agent = await caller()
    async with house(talkative, timeout_s=timeout_s) as (made, _):
        phone = Phone("pcmu", packets_of("pcmu", np.full(60 * INPUT_RATE, 5000, np.int16)))
        await phone.call(agent, f"sip:agent@{HOST}:{made.port}", line)
        made.call.speaking = True
        try:
            await made.call.until(lambda: made.call.heard.size > INPUT_RATE)
            yield made, phone
        finally:
            phone.hang_up()
            await agent.close()


async def test_a_call_goes_on_after_five_seconds_without_a_network() -> None:
    line = Line()
    async with a_call(line, timeout_s=30) as (made, phone):
        line.lose()
        await asyncio.sleep(0.5)  # what was on its way
        heard, got = made.call.heard.size, len(phone.got)
        await asyncio.sleep(4.5)
        assert len(phone.got) == got
        line.find()
        found = made.call.heard.size
        assert found - heard > 3 * INPUT_RATE  # the caller's time went on
        await made.call.until(lambda: made.call.heard.size > found + 2 * INPUT_RATE)
        assert np.any(made.call.heard[-INPUT_RATE:])
        voice = np.concatenate([G711("mu").decode(packet.payload) for packet in phone.got[got:]])
        assert np.any(voice)
        assert made.call.reasons == []


async def test_a_caller_whose_network_does_not_come_back_is_hung_up_and_frees_the_line() -> None:
    line = Line()
    async with a_call(line, timeout_s=2) as (made, phone):
        line.lose()
        await made.call.until(lambda: made.call.reasons == ["lost"])
        await made.transport.close()
        async with asyncio.timeout(10):
            await phone.over.wait()  # signalling has a way of its own here: the phone is told
