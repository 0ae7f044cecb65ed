"""A LiveKit agent whose model is the real server, in rooms of a real LiveKit server: one line of it is ours."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.harness.answers import number_in
from tests.harness.livekit import livekit_server, room_call
from tests.harness.livekit_agent import agent_in
from tests.harness.microphone import Microphone
from tests.harness.recogniser import counted_up, number_words
from tests.harness.server import running_server
from tests.harness.severed import Address, Line, tcp_relay
from tests.harness.sound import RATE

pytestmark = pytest.mark.e2e


async def test_an_agent_calls_its_tool_and_is_interrupted_at_what_was_heard(tmp_path: Path) -> None:
    async with (
        livekit_server(tmp_path) as livekit,
        running_server(tmp_path, "--log-words") as duologue,
        agent_in(livekit, "plugin", duologue.url, tmp_path) as app,
        room_call(livekit, "plugin", Microphone()) as caller,
    ):
        await caller.until_answered(0)
        asked = await caller.say("what time is it")
        await caller.until_answered(asked.end)
        assert [line["name"] for line in app.told("tool")] == ["get_time"]
        assert "tea" in app.said("assistant")[-1]["text"]

        asked = await caller.say("count to twenty")
        await caller.until(lambda recording: recording.agent.size > asked.end + 4 * RATE, "some of a count")
        stop = await caller.say("stop")
        recording = await caller.until_answered(stop.end + RATE // 2)
        played = counted_up(recording.agent[asked.end:stop.start + 2 * RATE])
        cut, = (line["text"] for line in app.said("assistant") if line["interrupted"])
        known = number_words(cut.lower().replace(",", " ").split())
        assert known == list(range(1, len(known) + 1))
        # The word under the cut may be made out by one side and not by the other; more than one it cannot be.
        assert abs(known[-1] - played[-1]) <= 1

        asked = await caller.say("what was the last number you said")
        recording = await caller.until_answered(asked.end)
        recalled = number_in(recording.agent[asked.end:])
        assert recalled is not None
        assert abs(recalled - known[-1]) <= 1  # the model and the application agree about what was heard
        assert app.said("user")[-1]["text"] == "what was the last number you said"

        assert await app.end() == 0
        assert await duologue.metric_reaches("duologue_calls_live", 0)
        assert await duologue.metric("duologue_calls_total", transport="websocket", outcome="hung up") == 1


async def test_an_agent_goes_on_after_its_server_was_killed_in_the_middle_of_a_reply(tmp_path: Path) -> None:
    servers: list[Address] = []
    async with (
        livekit_server(tmp_path) as livekit,
        tcp_relay(Line(), lambda: servers[-1]) as (host, port),
        running_server(tmp_path) as first,
    ):
        servers.append((host, int(first.url.rpartition(":")[2])))
        async with (
            agent_in(livekit, "killed", f"http://{host}:{port}", tmp_path) as app,
            room_call(livekit, "killed", Microphone()) as caller,
        ):
            await caller.until_answered(0)
            asked = await caller.say("count to twenty")
            await caller.until(lambda recording: recording.agent.size > asked.end + 3 * RATE, "some of a count")
            os.killpg(first.pid, signal.SIGKILL)
            await first.exit_code()
            async with running_server(tmp_path) as second:
                servers.append((host, int(second.url.rpartition(":")[2])))
                # Both servers have greeted: to the second it is a new session, which was told of the old one.
                await caller.until(lambda _: len([line for line in app.said("assistant")
                                                  if "this is Duologue" in line["text"]]) == 2, "a server that is back")
                await asyncio.sleep(0.5)
                asked = await caller.say("what is six plus nine")
                recording = await caller.until_answered(asked.end)
                assert number_in(recording.agent[asked.end:]) == 15
                assert await app.end() == 0
                assert await second.metric_reaches("duologue_calls_live", 0)
