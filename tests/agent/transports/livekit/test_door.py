"""What the worker says of its load, reads of a dispatch, and uses of LiveKit Agents."""

from __future__ import annotations

import inspect
import re

import pytest
from livekit import agents
from livekit.agents import AgentServer, worker
from livekit.agents.ipc.proc_pool import ProcPool

from duologue.agent.transports.livekit.door import FULL, fullness, session_of
from duologue.agent.transports.livekit.jobs import RoomJobs, RoomServer
from duologue.engine import Load

PERIOD_S = 0.08


def load(share: float, sessions: int = 1, waiting: int = 0, has_room: bool = True) -> Load:
    return Load(share * PERIOD_S, PERIOD_S, sessions, waiting, has_room)


def test_the_load_is_the_measured_share_of_what_the_engine_admits() -> None:
    assert fullness(load(0.4), 0.8) == pytest.approx(0.5)
    assert fullness(load(0.2), 0.8) == pytest.approx(0.25)


def test_an_idle_engine_is_not_loaded_by_what_it_once_measured() -> None:
    assert fullness(load(0.7, sessions=0), 0.8) == 0


def test_the_worker_is_full_if_and_only_if_the_engine_would_not_take_a_call_at_once() -> None:
    assert fullness(load(0.1, has_room=False), 0.8) == FULL
    assert fullness(load(0.1, waiting=1), 0.8) == FULL
    assert fullness(load(3.0), 0.8) < FULL


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


async def test_a_worker_that_was_never_registered_says_so() -> None:
    async def refuse(_request: object) -> None:
        raise AssertionError

    server = RoomServer(RoomJobs(lambda _info: pytest.fail("no job was assigned")), agent_name="", on_request=refuse,
                        ws_url="ws://127.0.0.1:9", api_key="k", api_secret="s", host="127.0.0.1", port=0)
    assert not server.registered
