"""A real telephone calls the real server: the same conversation as from a browser, narrow and wide."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import yaml

from duologue.config import DEFAULT_CONFIG
from tests.e2e.interrupted_count import check, spoken
from tests.harness.answers import number_in
from tests.harness.baresip import Account, CodecName, baresip
from tests.harness.microphone import Microphone
from tests.harness.recogniser import counted_up
from tests.harness.recording import Recording
from tests.harness.server import free_port, running_server
from tests.harness.sound import RATE, first_sound

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / "duologue" / DEFAULT_CONFIG


def with_telephones(folder: Path, port: int, **pipeline: object) -> str:
    """The shipped config with a SIP user, and what else a test needs of the pipeline."""
    config = yaml.safe_load(SHIPPED.read_text())
    config["pipeline"] |= pipeline
    config["sip"] = {"listen": [{"port": port}], "users": [{"name": "alice", "password": "sesame"}]}
    path = folder / "telephones.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def talk(folder: Path, codec: CodecName, microphone: Microphone) -> Recording:
    """Play the whole microphone to a server of its own, wait for the last reply to end, hang up."""
    port = free_port()
    async with (
        running_server(folder, with_telephones(folder, port), "--log-words") as server,
        baresip(folder / "phone", Account(port, password="sesame", codec=codec), microphone) as phone,
    ):
        await phone.dial()
        last = (await phone.until_said(microphone.length + RATE)).said(microphone)[-1]
        recording = await phone.until_answered(last.end)
        await phone.hang_up()
        assert await server.metric_reaches("duologue_calls_live", 0)
        assert await server.metric("duologue_calls_total", transport="sip", outcome="hung up") == 1
        assert "alice" not in server.log()  # the register of calls names nobody
        return recording


async def test_an_agent_interrupted_over_opus_knows_what_was_heard(tmp_path: Path) -> None:
    microphone = spoken()
    recording = await talk(tmp_path, "opus/48000/2", microphone)
    await asyncio.to_thread(check, recording, microphone)


async def test_an_agent_interrupted_over_pcmu_knows_what_was_heard(tmp_path: Path) -> None:
    # Of a telephone's band the embedded ear understands less: a short "stop" may be lost on it, a question over the
    # reply interrupts by its length too.
    microphone = Microphone().pause(7).say("count to twenty").pause(6).say("what was the last number you said")
    recording = await talk(tmp_path, "PCMU/8000/1", microphone)
    count, question = recording.said(microphone)
    played = counted_up(recording.agent[count.end:question.end])
    assert len(played) >= 2
    assert played[-1] < 20
    recalled = number_in(recording.agent[question.end:])
    assert recalled is not None
    # The word under the cut may be made out by one side and not by the other; more than one it cannot be.
    assert abs(recalled - played[-1]) <= 1


async def test_a_full_server_is_a_busy_line_and_the_next_call_is_answered(tmp_path: Path) -> None:
    port = free_port()
    full = {"admission": {"target_load": 1e-6, "window_units": 1}}  # after one unit, room for nobody beside it
    microphone = Microphone().pause(60)
    async with running_server(tmp_path, with_telephones(tmp_path, port, **full)) as server:
        account = Account(port, password="sesame")
        async with baresip(tmp_path / "first", account, microphone) as first:
            await first.dial()
            async with baresip(tmp_path / "second", account, microphone) as second:
                with pytest.raises(ConnectionError, match="486 Busy Here"):
                    await second.dial()
            assert await server.metric("duologue_refusals_total", reason="capacity") == 1
            await first.hang_up()
            assert await server.metric_reaches("duologue_calls_live", 0)
        async with baresip(tmp_path / "third", account, microphone) as third:
            await third.dial()
            await third.until_answered(0)
            # The server goes down: the caller is told so by a BYE, not by silence.
            server.terminate()
            # Two signals sent at once are one.
            assert await said('"event": "draining"', server.log)
            server.terminate()
            assert await server.exit_code() == 1
            assert await said("terminated", third.log)


async def said(what: str, log: Callable[[], str]) -> bool:
    """Whether ``what`` comes to stand in a log within a few seconds."""
    for _ in range(100):
        if what in log():
            return True
        await asyncio.sleep(0.1)
    return False


async def test_calls_are_seen_ended_and_given_keys_over_http(tmp_path: Path) -> None:
    port = free_port()
    async with (
        running_server(tmp_path, "--sip", f"udp:127.0.0.1:{port}") as server,
        baresip(tmp_path / "phone", Account(port), Microphone().pause(60)) as phone,
        aiohttp.ClientSession(server.url) as http,
    ):
        async with http.get("/healthz") as response:
            assert (await response.json())["parts"]["sip"] == {"up": True, "detail": ""}
        await phone.dial()
        call = next(line["call"] for line in map(json.loads, filter(lambda line: line.startswith("{"),
                    server.log().splitlines())) if line["event"] == "sip_call_answered")
        async with http.post(f"/v1/realtime/calls/{call}/dtmf", json={"keys": "42"}) as response:
            assert response.status == 200
        for _ in range(50):
            if phone.keys_heard() == "42":
                break
            await asyncio.sleep(0.1)
        assert phone.keys_heard() == "42"
        async with http.delete(f"/v1/realtime/calls/{call}") as response:
            assert response.status == 204
        assert await server.metric_reaches("duologue_calls_live", 0)


@asynccontextmanager
async def calling(folder: Path, target: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run ``duologue call`` until it has ended, at the latest with the block."""
    with (folder / "call.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).with_name("duologue")), "call", target, stdout=log, stderr=log)
    try:
        yield process
    except BaseException as fault:
        fault.add_note((folder / "call.log").read_text()[-3000:])
        raise
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def test_the_agent_calls_a_telephone_and_asks_after_it(tmp_path: Path) -> None:
    microphone = Microphone().pause(7).say("what is ten minus two")
    async with baresip(tmp_path / "phone", Account(free_port(), codec="opus/48000/2"), microphone) as phone:
        target = f"sip:alice@127.0.0.1:{phone.sip_port}"
        async with calling(tmp_path, target) as process:
            recording = await phone.until_said(microphone.length)
            said, = recording.said(microphone)
            recording = await phone.until_answered(said.end)
            assert first_sound(recording.agent, 0) is not None
            answer = recording.agent[said.end:]
            assert await asyncio.to_thread(number_in, answer) == 8
            process.terminate()
            assert await asyncio.wait_for(process.wait(), 20) == 0
        assert "terminated" in phone.log()
