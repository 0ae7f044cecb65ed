"""A scripted server of the OpenAI Realtime protocol: it answers what is a formality, a test says the rest.

Fields and order are those of the protocol's general availability, as OpenAI's own clients parse them.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from aiohttp import WSMsgType, web

from tests.harness.server import free_port

LIMIT_S = 20.0
RATE = 24_000


class RealtimeServer:
    """What clients sent, over all their connections, and one connection at a time to send to."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.queries: list[dict[str, str]] = []
        """Of each connection's upgrade."""
        self.answers_at_once = False
        """Whether a reply begins before the item that it answers is confirmed."""
        self.heard = 0
        """Samples of audio that were appended."""
        self._socket: web.WebSocketResponse | None = None
        self._changed = asyncio.Event()
        self._numbers = itertools.count()
        self._last_item: str | None = None

    async def take(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection."""
        socket = self._socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        self.headers.append(dict(request.headers))
        self.queries.append(dict(request.query))
        await self.send("session.created", session={"type": "realtime", "object": "realtime.session"})
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                await self._on(json.loads(message.data))
        return socket

    async def _on(self, event: dict[str, Any]) -> None:
        if event["type"] == "input_audio_buffer.append":
            self.heard += len(base64.b64decode(event["audio"])) // 2
        else:
            self.received.append(event)
        match event["type"]:
            case "session.update":
                await self.send("session.updated", session=event["session"])
            case "conversation.item.create":
                if self.answers_at_once:
                    await self.begin(1)
                await self.item(event["item"])
            case "conversation.item.delete":
                await self.send("conversation.item.deleted", item_id=event["item_id"])
            case "conversation.item.truncate":
                await self.truncated(event["item_id"], event["audio_end_ms"])
        self._changed.set()

    async def until(self, met: Callable[[], object]) -> None:
        """Wait until ``met``. Raises ``TimeoutError`` if it never is."""
        async with asyncio.timeout(LIMIT_S):
            while not met():
                self._changed.clear()
                await self._changed.wait()

    async def until_sent(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait for the ``count``-th event of a kind from the client."""
        await self.until(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What came of a kind."""
        return [event for event in self.received if event["type"] == kind]

    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event."""
        assert self._socket is not None
        await self._socket.send_str(json.dumps({"type": kind, "event_id": f"event_{next(self._numbers)}", **fields}))

    async def item(self, item: dict[str, Any]) -> None:
        """Say that the conversation has a new item."""
        previous, self._last_item = self._last_item, item["id"]
        await self.send("conversation.item.added", item=item, previous_item_id=previous)
        await self.send("conversation.item.done", item=item, previous_item_id=previous)

    async def state(self, state: str) -> None:
        """Say who has the floor."""
        await self.send("duologue.state", state=state, at_ms=0)

    async def speech(self, kind: str) -> None:
        """Say that the caller's speech ``started`` or ``stopped``."""
        end = "audio_start_ms" if kind == "started" else "audio_end_ms"
        await self.send(f"input_audio_buffer.speech_{kind}", item_id="item_user", **{end: 0})

    async def begin(self, number: int, **response: Any) -> None:
        """Begin reply ``number``."""
        ids = _ids(number)
        await self.send("response.created", response={"id": ids["response_id"], "object": "realtime.response",
                                                      "status": "in_progress", "output": [], **response})
        item = {"id": ids["item_id"], "type": "message", "role": "assistant", "status": "in_progress", "content": []}
        await self.send("response.output_item.added", response_id=ids["response_id"], output_index=0, item=item)
        await self.item(item)
        await self.send("response.content_part.added", **ids, part={"type": "audio", "transcript": ""})

    async def text(self, number: int, delta: str) -> None:
        """Send more of a reply's text."""
        await self.send("response.output_audio_transcript.delta", **_ids(number), delta=delta)

    async def audio(self, number: int, ms: int, *, level: int = 8000) -> None:
        """Send more of a reply's audio, all samples ``level``."""
        pcm = np.full(RATE * ms // 1000, level, np.int16)
        await self.send("response.output_audio.delta", **_ids(number),
                        delta=base64.b64encode(pcm.tobytes()).decode())

    async def end(self, number: int, status: str = "completed", reason: str | None = None) -> None:
        """End a reply."""
        ids = _ids(number)
        item = {"id": ids["item_id"], "type": "message", "role": "assistant", "content": [],
                "status": "completed" if status == "completed" else "incomplete"}
        details = {"status_details": {"type": status, "reason": reason}} if reason else {}
        await self.send("response.output_audio.done", **ids)
        await self.send("response.output_item.done", response_id=ids["response_id"], output_index=0, item=item)
        await self.send("response.done", response={"id": ids["response_id"], "object": "realtime.response",
                                                   "status": status, "output": [item], **details})

    async def truncated(self, item_id: str, audio_end_ms: int) -> None:
        """Say how much of an item was heard."""
        await self.send("conversation.item.truncated", item_id=item_id, content_index=0, audio_end_ms=audio_end_ms)

    async def call(self, number: int, name: str, arguments: dict[str, Any]) -> None:
        """Ask for a tool."""
        response_id, item_id = f"resp_{number}", f"item_{number}"
        item = {"id": item_id, "type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": "",
                "status": "in_progress"}
        await self.send("response.created", response={"id": response_id, "object": "realtime.response",
                                                      "status": "in_progress", "output": []})
        await self.send("response.output_item.added", response_id=response_id, output_index=0, item=item)
        await self.item(item)
        whole = {**item, "arguments": json.dumps(arguments), "status": "completed"}
        await self.send("response.function_call_arguments.done", response_id=response_id, item_id=item_id,
                        output_index=0, call_id=item["call_id"], name=name, arguments=whole["arguments"])
        await self.send("response.output_item.done", response_id=response_id, output_index=0, item=whole)
        await self.send("response.done", response={"id": response_id, "object": "realtime.response",
                                                   "status": "completed", "output": [whole]})

    def drop(self) -> None:
        """Lose the connection, without a word."""
        assert self._socket is not None
        transport = self._socket._req.transport if self._socket._req is not None else None
        assert transport is not None
        transport.abort()


def _ids(number: int) -> dict[str, Any]:
    return {"response_id": f"resp_{number}", "item_id": f"item_{number}", "output_index": 0, "content_index": 0}


@asynccontextmanager
async def realtime_server() -> AsyncIterator[tuple[RealtimeServer, str]]:
    """Serve on a free port; gives the server and its address."""
    served = RealtimeServer()
    app = web.Application()
    app.router.add_get("/v1/realtime", served.take)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield served, f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
