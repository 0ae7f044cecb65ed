"""A real call with an interruption, recorded by the real server and replayed through the whole pipeline."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.harness.microphone import Microphone
from tests.harness.peer import peer_call
from tests.harness.recording import Recording
from tests.harness.server import running_server
from tests.harness.sound import RATE, spans

pytestmark = pytest.mark.e2e


async def replayed(*arguments: str) -> tuple[int, str]:
    command = str(Path(sys.executable).with_name("duologue"))
    process = await asyncio.create_subprocess_exec(command, "replay", *arguments, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode()


async def test_a_recorded_call_replays_without_a_difference_and_shows_that_of_another_config(tmp_path: Path) -> None:
    async with running_server(tmp_path, "--record", str(tmp_path / "calls")) as server:
        async with peer_call(server.url, Microphone()) as call:
            await call.until(lambda so_far: so_far.agent.size > 3 * RATE and not spans(so_far.agent[-RATE:]),
                             "quiet after the greeting")
            span = await call.say("count to twenty")
            await call.until(lambda so_far: bool(spans(so_far.agent[span.end + RATE:])), "counting")
            await call.say("stop stop please stop")
            span = await call.say("what is seven plus five")
            await call.until_answered(span.end)
        assert await server.metric_reaches("duologue_calls_total", 1)
    (recording,) = (tmp_path / "calls").iterdir()
    assert '"kind":"interrupted"' in (recording / "tape.jsonl").read_text()
    assert await replayed(str(recording)) == (0, "")
    assert await replayed(str(recording), "--engine", "tape") == (0, "")
    deaf = tmp_path / "deaf.yaml"
    shipped = (Path(__file__).parents[2] / "duologue/stage_configs/embedded.yaml").read_text()
    deaf.write_text(shipped + "conversation:\n  vad: {onset_threshold: 0.999}\n")
    status, shown = await replayed(str(recording), "--config", str(deaf))
    assert status == 1
    assert "input_audio_buffer.speech_started" in shown


async def test_a_recorded_call_with_a_tool_replays_without_a_difference(tmp_path: Path) -> None:
    weather = {"type": "function", "name": "get_weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    async with running_server(tmp_path, "--record", str(tmp_path / "calls")) as server:
        async with peer_call(server.url, Microphone()) as call:
            await call.until(lambda so_far: so_far.agent.size > 3 * RATE and not spans(so_far.agent[-RATE:]),
                             "quiet after the greeting")
            call.send({"type": "session.update", "session": {"type": "realtime", "tools": [weather]}})
            await call.say("what is the weather in paris")
            so_far = await call.until(lambda so_far: bool(done(so_far)), "the tool's call")
            (asked,) = done(so_far)
            assert (asked["name"], json.loads(asked["arguments"])) == ("get_weather", {"city": "paris"})
            call.send({"type": "conversation.item.create", "item": {
                "type": "function_call_output", "call_id": asked["call_id"], "output": '{"sky": "clear"}'}})
            call.send({"type": "response.create"})
            await call.until_answered(so_far.agent.size)
        assert await server.metric_reaches("duologue_calls_total", 1)
        assert await server.metric_reaches("duologue_tool_calls_total", 1)
    (recording,) = (tmp_path / "calls").iterdir()
    tape = (recording / "tape.jsonl").read_text()
    assert '"type":"tool_call"' in tape
    assert '"type":"tool_result"' in tape
    assert "The sky is clear." in tape
    assert await replayed(str(recording)) == (0, "")
    assert await replayed(str(recording), "--engine", "tape") == (0, "")


def done(so_far: Recording) -> list[dict[str, Any]]:
    """The calls of tools that the client was told of."""
    return [event.body for event in so_far.events if event.type == "response.function_call_arguments.done"]
