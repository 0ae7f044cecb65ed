"""What happens to calls when parts of the server die, when it is told to stop, and when it is full."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
import yaml

from duologue.config import DEFAULT_CONFIG
from tests.harness.answers import number_in
from tests.harness.browser import browser_call, open_page
from tests.harness.microphone import Microphone
from tests.harness.peer import PeerCall, RefusedError, peer_call
from tests.harness.server import running_server
from tests.harness.sound import RATE, spans

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / "duologue" / DEFAULT_CONFIG


async def ask(call: PeerCall, question: str, limit_s: float = 40.0) -> int | None:
    """Say a question and give the number heard in the answer."""
    span = await call.say(question)
    recording = await call.until_answered(span.end, limit_s=limit_s)
    # In a thread: the caller's microphone goes on meanwhile.
    return await asyncio.to_thread(number_in, recording.agent[span.end :])


async def greeted(call: PeerCall) -> None:
    """Wait until the agent has said what it says of its own accord, if anything."""
    await call.until(lambda so_far: so_far.agent.size > 3 * RATE and not spans(so_far.agent[-RATE:]),
                     "quiet after the greeting")


async def test_a_call_goes_on_when_each_stage_process_is_killed(tmp_path: Path) -> None:
    stages = yaml.safe_load(SHIPPED.read_text())["pipeline"]["stages"]
    names = {stage["process"] for stage in stages}
    questions = iter([("what is six plus nine", 15), ("what is ten minus two", 8)])
    async with running_server(tmp_path) as server, peer_call(server.url, Microphone()) as call:
        await greeted(call)
        assert await ask(call, "what is seven plus five") == 12
        workers = [child.pid for child in server.children() if "duologue.engine.worker" in child.command]
        assert len(workers) == len(names)
        for killed, pid in enumerate(workers, 1):
            os.kill(pid, signal.SIGKILL)
            assert await server.metric_reaches("duologue_stage_restarts_total", killed)
            assert await server.becomes_healthy()
            question, answer = next(questions)
            assert await ask(call, question) == answer
        for name in names:
            assert await server.metric("duologue_stage_restarts_total", process=name) == 1
        assert await server.metric("duologue_calls_live") == 1


async def test_a_call_on_the_default_pipeline_needs_neither_torch_nor_a_system_voice(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, peer_call(server.url, Microphone()) as call:
        await greeted(call)
        assert call.recording().replies(), "there was no greeting"
        assert len(server.with_library("libc.so")) >= 3
        assert not server.with_library("libtorch")
        assert not server.with_library("libflite")


async def test_sigterm_lets_a_live_call_finish_and_takes_no_new_one(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with peer_call(server.url, Microphone()) as call:
            await greeted(call)
            server.terminate()
            with pytest.raises(RefusedError) as refusal:
                async with peer_call(server.url, Microphone()):
                    pass
            assert refusal.value.status == 503
            assert '"draining"' in refusal.value.body
            assert await ask(call, "what is seven plus five") == 12
        assert await server.exit_code() == 0
        assert not server.children()


async def test_a_page_that_hangs_up_leaves_nothing_behind(tmp_path: Path) -> None:
    microphone = Microphone().pause(1)
    async with running_server(tmp_path) as server:
        async with browser_call(server.url, microphone) as call:
            assert await server.metric_reaches("duologue_calls_live", 1)
            await call.hang_up()
            assert await server.metric_reaches("duologue_calls_live", 0)
            await call.page.get_by_role("button", name="Call").wait_for()
            assert not [line for line in call.console if line.startswith("error")]
        assert await server.metric("duologue_calls_total", transport="webrtc") == 1


async def test_a_page_closed_in_the_middle_of_a_call_leaves_nothing_behind(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        async with browser_call(server.url, Microphone().pause(1)) as call:
            assert await server.metric_reaches("duologue_calls_live", 1)
            await call.page.close()
        assert await server.metric_reaches("duologue_calls_live", 0)


async def test_the_agents_own_greeting_in_the_microphone_interrupts_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, peer_call(server.url, Microphone(), loudspeaker=0.2) as call:
        await greeted(call)
        recording = call.recording()
        assert recording.replies(), "there was no greeting"
        assert all(event.body["response"]["status"] == "completed" for event in recording.of_type("response.done"))
        assert not recording.of_type("output_audio_buffer.cleared")


async def test_a_full_server_tells_the_page_its_place_in_the_queue(tmp_path: Path) -> None:
    config = yaml.safe_load(SHIPPED.read_text())
    # A machine so slow that it keeps up with one call only.
    config["pipeline"]["admission"] = {"target_load": 0.000001}
    path = tmp_path / "narrow.yaml"
    path.write_text(yaml.safe_dump(config))
    async with running_server(tmp_path, str(path)) as server, peer_call(server.url, Microphone()) as first:
        await greeted(first)
        async with open_page(Microphone().pause(1)) as call:
            await call.page.goto(server.url)
            await call.press_call()
            await call.page.get_by_text("All lines are busy").first.wait_for()
            await call.page.get_by_text("You are next").first.wait_for()
            await first.close()
            # The page asks again by itself, and the call starts.
            await call.until(lambda _: any(state == "connected" for _, state in call.states), "its turn")
