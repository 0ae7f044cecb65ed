"""Somebody's LiveKit agent, a program of its own: an ``AgentSession`` in a room.

Run it as ``python -m tests.harness.livekit_agent --room-url U --token T --model-url M``. It writes what it knows as
JSON lines; a line on its standard input ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from livekit import rtc
from livekit.agents import Agent, AgentSession, ConversationItemAddedEvent, RunContext, function_tool, llm
from livekit.agents.types import APIConnectOptions
from livekit.agents.voice.room_io import RoomOptions

from duologue.plugins.livekit import RealtimeModel
from tests.harness.livekit import LiveKitProcess

RETRIES = APIConnectOptions(max_retry=120, retry_interval=0.5)
"""Enough for a server to be started anew on a busy machine."""


def tell(what: str, **fields: Any) -> None:
    """Write a line."""
    print(json.dumps({"what": what, **fields}), flush=True)


class Clock(Agent):
    """Has one tool."""

    def __init__(self) -> None:
        super().__init__(instructions="Tell the time.")

    @function_tool
    async def get_time(self, context: RunContext[Any]) -> str:
        """Say what time it is."""
        tell("tool", name="get_time")
        return "It is time for tea."


async def run(room_url: str, token: str, model: llm.RealtimeModel) -> None:
    """Be the agent until a line comes."""
    room = rtc.Room()
    await room.connect(room_url, token)
    # Without LiveKit's three deaf seconds: the server has a rule of its own for echo.
    session: AgentSession[None] = AgentSession(llm=model, aec_warmup_duration=None)

    @session.on("conversation_item_added")
    def on_item(event: ConversationItemAddedEvent) -> None:
        if isinstance(event.item, llm.ChatMessage):
            tell("said", role=event.item.role, text=event.item.text_content, interrupted=event.item.interrupted)

    await session.start(Clock(), room=room, room_options=RoomOptions(close_on_disconnect=False))
    tell("started")
    await asyncio.to_thread(sys.stdin.readline)
    await session.aclose()
    await model.aclose()
    await room.disconnect()


class App:
    """The program, seen from a test."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.log_path = log
        self._process = process

    def told(self, what: str) -> list[dict[str, Any]]:
        """Its lines of a kind."""
        lines = [json.loads(line) for line in self.log_path.read_text(errors="replace").splitlines()
                 if line.startswith('{"what"')]
        return [line for line in lines if line["what"] == what]

    def said(self, role: str) -> list[dict[str, Any]]:
        """What one side has said as it knows: ``text``, ``interrupted``."""
        return [line for line in self.told("said") if line["role"] == role]

    async def end(self) -> int:
        """End it in order; returns its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        return await asyncio.wait_for(self._process.wait(), 20)


@asynccontextmanager
async def agent_in(server: LiveKitProcess, room: str, model_url: str, folder: Path,
                   program: Sequence[str] = ("tests.harness.livekit_agent",)) -> AsyncIterator[App]:
    """Bring the agent into ``room``, with the Duologue server at ``model_url``.

    ``program`` is a module that takes the same arguments as this one, and further ones of its own.
    """
    log = folder / f"agent-{room}.log"
    with log.open("wb") as sink:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *program, "--room-url", server.url, "--model-url", model_url, "--token",
            server.token(room, "agent", agent=True), cwd=Path(__file__).parents[2],
            stdin=asyncio.subprocess.PIPE, stdout=sink, stderr=sink)
    app = App(process, log)
    try:
        async with asyncio.timeout(60):
            while not app.told("started"):
                if process.returncode is not None:
                    raise RuntimeError("the agent did not start")
                await asyncio.sleep(0.1)
        yield app
    except BaseException as fault:
        fault.add_note(f"the agent's last words:\n{log.read_text(errors='replace')[-3000:]}")
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def arguments() -> argparse.ArgumentParser:
    """What such a program is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--room-url", "--token", "--model-url"):
        parser.add_argument(name, required=True)
    return parser


if __name__ == "__main__":
    given = arguments().parse_args()
    asyncio.run(run(given.room_url, given.token, RealtimeModel(given.model_url, conn_options=RETRIES)))
