"""From bind to drain. Signals are raised in this process, once the server has said that it listens."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from duologue.agent.server import CannotListenError, serve
from tests.agent.fake_host import FakeHost


@dataclass
class Running:
    host: FakeHost
    url: str
    status: asyncio.Task[int]


@asynccontextmanager
async def running(tmp_path: Path, drain_timeout_s: float = 3600.0) -> AsyncIterator[Running]:
    host = FakeHost()
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    status = asyncio.ensure_future(serve(host, bind="127.0.0.1", port=0, drain_timeout_s=drain_timeout_s,
                                         announce=said.set_result, web_folder=tmp_path))
    try:
        line = await said
        yield Running(host, line.split()[-1], status)
    finally:
        status.cancel()
        await asyncio.gather(status, return_exceptions=True)


async def call(url: str) -> int:
    async with aiohttp.ClientSession() as http, http.post(
            f"{url}/v1/realtime/calls", data="v=0", headers={"Content-Type": "application/sdp"}) as response:
        return response.status


@pytest.mark.parametrize("name", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_with_no_call_live_ends_with_status_0(tmp_path: Path, name: signal.Signals) -> None:
    async with running(tmp_path) as server:
        signal.raise_signal(name)
        assert await server.status == 0
        assert server.host.closed == 1
        with pytest.raises(aiohttp.ClientConnectionError):
            await call(server.url)


async def test_live_calls_finish_and_new_ones_are_refused_while_draining(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert await call(server.url) == 201
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        assert await call(server.url) == 503
        assert not server.status.done()
        [live] = server.host.live
        await server.host.hang_up(live)
        assert await server.status == 0


async def test_the_wait_for_live_calls_is_bounded(tmp_path: Path) -> None:
    async with running(tmp_path, drain_timeout_s=0.01) as server:
        assert await call(server.url) == 201
        signal.raise_signal(signal.SIGTERM)
        assert await server.status == 0
        assert server.host.live == set()


async def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        assert await call(server.url) == 201
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGINT)
        assert await server.status == 1
        assert server.host.closed == 1


async def test_a_taken_port_is_said_in_words(tmp_path: Path) -> None:
    host = FakeHost()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotListenError, match=f"port {port} on 127.0.0.1 is taken"):
            await serve(host, bind="127.0.0.1", port=port, drain_timeout_s=1, web_folder=tmp_path)
    assert host.closed == 1
