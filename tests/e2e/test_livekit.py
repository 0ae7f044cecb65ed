"""People who call the real server through rooms of a real LiveKit server: with LiveKit's SDK, and from a browser."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.e2e.interrupted_count import check, cut_at, spoken
from tests.harness.answers import number_in
from tests.harness.livekit import KEY, SECRET, LiveKitProcess, livekit_server, room_call
from tests.harness.livekit_browser import room_page
from tests.harness.microphone import Microphone
from tests.harness.recogniser import counted
from tests.harness.server import ServerProcess, running_server
from tests.harness.sound import RATE

pytestmark = pytest.mark.e2e

OURS = {"type": "session.update", "session": {"duologue": {"events": True}}}


def worker(folder: Path, server: LiveKitProcess) -> AbstractAsyncContextManager[ServerProcess]:
    """``duologue livekit``, registered (it is healthy only then)."""
    program = str(Path(sys.executable).with_name("duologue"))
    return running_server(folder, "--url", server.url, "--api-key", KEY, "--api-secret", SECRET,
                          command=(program, "livekit"))


async def test_an_agent_interrupted_in_a_room_knows_what_was_heard(tmp_path: Path) -> None:
    microphone = spoken()
    async with livekit_server(tmp_path) as server, worker(tmp_path, server) as duologue:
        async with room_call(server, "sdk", microphone) as caller:
            await caller.until(lambda recording: bool(recording.of_type("session.created")), "a session")
            await caller.send(OURS)
            so_far = await caller.until_sample(microphone.length + 2 * RATE)
            # In a thread, as everything that takes time: the microphone runs from this loop.
            last = (await asyncio.to_thread(so_far.said, microphone))[-1]
            recording = await caller.until_answered(last.end)
            assert await duologue.metric("duologue_calls_live", transport="livekit") == 1
        assert await duologue.metric_reaches("duologue_calls_live", 0)
        assert check(recording, microphone) == cut_at(recording, microphone)

        # The captions that stand are what was said and heard.
        cut = recording.of_type("duologue.reply.heard")[-1].body
        assert caller.said_in(cut["item_id"]) == cut["heard_text"] != cut["text"]
        understood = [caption.text for caption in caller.captions if caption.speaker == "caller" and caption.final]
        assert understood == [event.body["transcript"] for event in recording.of_type(
            "conversation.item.input_audio_transcription.completed")]
        assert {"thinking", "speaking", "listening"} <= {state for _, state in caller.states}


async def test_a_browser_with_livekits_own_client_interrupts_too(tmp_path: Path) -> None:
    microphone = spoken()
    async with livekit_server(tmp_path) as server, worker(tmp_path, server) as duologue:
        async with room_page(server, "browser", microphone) as call:
            await call.until(lambda recording: bool(recording.of_type("session.created")), "a session")
            await call.tell(OURS)
            so_far = await call.until_sample(microphone.length + 2 * RATE)
            last = (await asyncio.to_thread(so_far.said, microphone))[-1]
            recording = await call.until_answered(last.end)
            captions, states = await call.captions(), await call.agent_states()
            await call.hang_up()
        assert await duologue.metric_reaches("duologue_calls_live", 0)
        assert check(recording, microphone) == cut_at(recording, microphone)
        cut = recording.of_type("duologue.reply.heard")[-1].body
        assert [one["text"] for one in captions if one["segment"] == cut["item_id"]][-1] == cut["heard_text"]
        assert "speaking" in states


async def test_a_reply_goes_on_after_the_livekit_server_was_away_and_a_drained_worker_lets_the_call_finish(
    tmp_path: Path,
) -> None:
    async with livekit_server(tmp_path) as server, worker(tmp_path, server) as duologue:
        async with room_call(server, "away", Microphone()) as caller:
            await caller.until_answered(0)
            asked = await caller.say("count to twenty")
            await caller.until(lambda recording: len(counted(recording.agent[asked.end :])) >= 3, "a count")
            await server.kill()
            await asyncio.sleep(1)
            await server.start()
            # Not by a silence: how long the room is away is the machine's affair, and it may take a second try.
            await caller.until(lambda recording: len(recording.of_type("output_audio_buffer.stopped")) == 2,
                               "the end of the count", limit_s=60)
            assert caller.happened[:2] == ["reconnecting", "reconnected"]
            assert caller.happened[-1] == "reconnected"
            recording = await caller.until_sample(caller.samples + RATE)
            numbers = [number for number, _ in counted(recording.agent[asked.end :])]
            # What the dying server had in its hands is lost; the rest of the count waited.
            assert numbers == sorted(numbers), numbers
            assert numbers[-1] == 20, numbers
            assert len(numbers) >= 14, numbers

            duologue.terminate()
            await asyncio.sleep(1)
            asked = await caller.say("what is six plus nine")
            recording = await caller.until_answered(asked.end)
            assert number_in(recording.agent[asked.end :]) == 15
            assert await duologue.metric("duologue_calls_live") == 1
        assert await duologue.exit_code() == 0


async def test_a_network_that_is_away_for_five_seconds_costs_five_seconds(tmp_path: Path) -> None:
    async with livekit_server(tmp_path) as server, worker(tmp_path, server) as duologue:
        async with room_call(server, "held", Microphone()) as caller:
            await caller.until_answered(0)
            server.hold()
            await asyncio.sleep(5)
            server.release()
            await asyncio.sleep(5)
            asked = await caller.say("what is seven plus five")
            recording = await caller.until_answered(asked.end)
            assert number_in(recording.agent[asked.end :]) == 12
            assert caller.happened == []
        assert await duologue.metric_reaches("duologue_calls_live", 0)
        assert await duologue.healthy()
