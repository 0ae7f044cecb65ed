"""What the worker says of its load, reads of a dispatch, and uses of LiveKit Agents."""

from __future__ import annotations

import asyncio
import inspect
import re
import time
from typing import cast

import pytest
from livekit import agents
from livekit.agents import AgentServer, worker
from livekit.agents.ipc.proc_pool import ProcPool

from duologue.agent.config import ConversationConfig
from duologue.agent.switchboard import Switchboard
from duologue.agent.transports.livekit import door as door_module
from duologue.agent.transports.livekit.config import LiveKitConfig
from duologue.agent.transports.livekit.door import FULL, LiveKitDoor, fullness, session_of
from duologue.agent.transports.livekit.jobs import RoomJobs
from duologue.engine import Engine, Load

PERIOD_S = 0.08


def load(share: float, sessions: int = 1, waiting: int = 0, has_room: bool = True) -> Load:
    return Load(share * PERIOD_S, PERIOD_S, sessions, waiting, has_room)


HALF = load(0.5)


def test_the_load_is_the_measured_share_of_what_the_engine_admits() -> None:
    assert fullness(load(0.4), 0.8) == pytest.approx(0.5)
    assert fullness(load(0.2), 0.8) == pytest.approx(0.25)


def test_an_idle_engine_is_not_loaded_by_what_it_once_measured() -> None:
    assert fullness(load(0.7, sessions=0), 0.8) == 0


def test_the_worker_is_full_if_and_only_if_the_engine_would_not_take_a_call_at_once() -> None:
    assert fullness(load(0.1, has_room=False), 0.8) == FULL
    assert fullness(load(0.1, waiting=1), 0.8) == FULL
    assert fullness(load(3.0), 0.8) < FULL


async def test_the_server_is_never_told_not_to_ask() -> None:
    door = door_to_nowhere(load(3.0, has_room=False))
    assert 0.5 < await asyncio.to_thread(door._load_from_thread) < 0.7
    await door.close()


@pytest.mark.parametrize(("metadata", "session"), [
    ("", {}), ("sip", {}), ("[1]", {}), ("[" * 5000, {}), ('{"instructions": "x"}', {"instructions": "x"}),
])
def test_a_dispatchs_metadata_is_a_session_object_or_nothing(metadata: str, session: dict[str, object]) -> None:
    assert session_of(metadata) == session


def test_livekit_agents_still_has_what_is_used_of_it() -> None:
    """Private names, held against the installed version."""
    assert agents.__version__ == "1.8.9"
    source = inspect.getsource(worker)
    used = set(re.findall(r"self\._proc_pool\.(\w+)", source))
    assert used == {"start", "aclose", "on", "launch_job", "processes", "get_by_job_id", "set_target_idle_processes"}
    jobs = RoomJobs(lambda _info: pytest.fail("no job was assigned"))
    assert all(hasattr(jobs, name) for name in used)
    assert all(hasattr(ProcPool, name) or name in inspect.getsource(ProcPool.__init__) for name in used)
    assert "self._connecting = True" in inspect.getsource(AgentServer._connection_task)
    assert inspect.getsource(AgentServer.run).count("self._proc_pool = ") == 1


def door_to_nowhere(now: Load = HALF) -> LiveKitDoor:
    config = LiveKitConfig.model_validate({"url": "ws://127.0.0.1:9", "api_key": "k", "api_secret": "s" * 32})
    board = Switchboard(cast(Engine, None), ConversationConfig())
    return LiveKitDoor(config, board, lambda: now, target_load=0.8)


async def test_a_worker_that_is_not_registered_says_so_and_can_be_drained_and_closed() -> None:
    door = door_to_nowhere()
    door.open()
    await asyncio.sleep(0.5)
    assert not door.health().up
    assert "ws://127.0.0.1:9" in door.health().detail
    door.drain()
    await asyncio.wait_for(door.close(), 10)


@pytest.mark.parametrize("drained", [False, True])
@pytest.mark.parametrize("opened", [False, True])
async def test_a_door_can_be_closed_before_it_is_open_and_twice(opened: bool, drained: bool) -> None:
    door = door_to_nowhere()
    if opened:
        door.open()
    if drained:
        door.drain()
    await asyncio.wait_for(door.close(), 10)
    await asyncio.wait_for(door.close(), 10)


async def test_a_busy_loop_is_as_loaded_as_it_last_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "_LOAD_WAIT_S", 0.2)
    door = door_to_nowhere()
    known = await asyncio.to_thread(door._load_from_thread)
    assert known == pytest.approx(0.6 * 0.625)
    asking = asyncio.get_running_loop().run_in_executor(None, door._load_from_thread)
    time.sleep(0.5)  # noqa: ASYNC251 - the loop is to be busy
    assert await asking == known
    await door.close()
