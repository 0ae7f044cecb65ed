"""``AsyncLLM`` on an event loop of its own, in a thread of the stage process.

The runner is synchronous and so is the loop around it. What it wants done goes in as commands, in order; what came
of it waits in ``events``, and a descriptor becomes readable, so that nobody has to ask again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import tempfile
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any

from vllm.engine.protocol import StreamingInput
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.engine.exceptions import EngineDeadError

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.vllm import hidden, loader
from duologue.engine.runners.vllm.hidden import RowsFrame
from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.start import engine_args
from duologue.engine.runners.weights import Weights

PEER_CREDENTIALS = struct.Struct("3i")
"""``struct ucred`` of SO_PEERCRED (unix(7)): process, user, group."""


@dataclass(frozen=True, slots=True)
class TokensEvent:
    """Tokens ``ids`` of ``segment``; ``finish`` is vLLM's reason when the segment is over."""

    segment: int
    ids: tuple[int, ...]
    finish: str | None


@dataclass(frozen=True, slots=True)
class RefusedEvent:
    """vLLM would not take ``segment``, or gave its request up."""

    segment: int
    detail: str


@dataclass(frozen=True, slots=True)
class DiedEvent:
    """The engine is gone, and all requests with it."""

    detail: str


Event = TokensEvent | RowsFrame | RefusedEvent | DiedEvent


@dataclass(frozen=True, slots=True)
class Input:
    """A segment for a request: its number, vLLM's ``EngineInput`` and ``SamplingParams``."""

    segment: int
    prompt: Any
    params: Any


class Request:
    """One resumable request: inputs in, one segment at a time."""

    def __init__(self, llm: Any, name: str, first: Input, events: Events) -> None:
        self._events = events
        self._inputs: asyncio.Queue[Input] = asyncio.Queue()
        self._segment = first.segment
        self._inputs.put_nowait(first)
        self._task = asyncio.create_task(self._run(llm, name, first.params), name=f"request {name}")

    def append(self, item: Input) -> None:
        """Go on with ``item``; what went before is over."""
        self._segment = item.segment
        self._inputs.put_nowait(item)
        if self._task.done():
            self._events.put(RefusedEvent(item.segment, "its request has ended"))

    async def abort(self) -> None:
        """Take it out of the engine; the engine has been told when this returns."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _stream(self) -> AsyncGenerator[Any, None]:
        while True:
            item = await self._inputs.get()
            yield StreamingInput(prompt=item.prompt, sampling_params=item.params)

    async def _run(self, llm: Any, name: str, params: Any) -> None:
        try:
            async for output in llm.generate(self._stream(), params, name):
                completion = output.outputs[0]
                finish = completion.finish_reason
                if finish not in (None, "stop", "length"):
                    self._events.put(RefusedEvent(self._segment, f"vLLM ended the segment: {finish}"))
                    return
                self._events.put(TokensEvent(self._segment, tuple(completion.token_ids), finish))
        except EngineDeadError as error:
            self._events.put(DiedEvent(str(error)))
            return
        except Exception as error:
            self._events.put(RefusedEvent(self._segment, f"{type(error).__name__}: {error}"))
            return
        self._events.put(RefusedEvent(self._segment, "vLLM ended the request"))


class Events:
    """What the loop's thread has for the stage's thread, and the descriptor that says so."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __bool__(self) -> bool:
        return bool(self._events)

    def put(self, event: Event) -> None:
        """File ``event`` (the loop's thread)."""
        self._events.append(event)
        os.eventfd_write(self.fd, 1)

    def take(self) -> list[Event]:
        """What has come; the descriptor is unreadable again (the stage's thread)."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)
        return [self._events.popleft() for _ in range(len(self._events))]


class Engine:
    """The thread, and vLLM in it.

    Raises what vLLM raises when it cannot start, and ``ConfigError`` for weights that are no good.
    """

    def __init__(self, config: DecoderConfig, weights: Weights, options: VllmOptions) -> None:
        self.events = Events()
        self.config: Any = None
        """vLLM's ``VllmConfig``, with what it found out when it started."""
        self._requests: dict[int, Request] = {}
        self._rows_connected = asyncio.Event()
        self._rows_tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._commands: asyncio.Queue[Coroutine[Any, Any, None] | None] = asyncio.Queue()
        self._started = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(config, weights, options), name="vllm", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            self._thread.join()
            os.close(self.events.fd)
            raise self._failure

    def open(self, request: int, first: Input) -> None:
        """Begin ``request`` with its first input."""
        self._command(self._open(request, first))

    def append(self, request: int, item: Input) -> None:
        """Go on with ``request``."""
        self._command(self._append(request, item))

    def abort(self, request: int) -> None:
        """End ``request``; what is opened afterwards finds its KV free."""
        self._command(self._abort(request))

    def close(self) -> None:
        """End the engine process and the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._commands.put_nowait, None)
            self._thread.join()
            os.close(self.events.fd)

    def _command(self, command: Coroutine[Any, Any, None]) -> None:
        self._loop.call_soon_threadsafe(self._commands.put_nowait, command)

    # --- in the thread --------------------------------------------------------------------------------------

    def _run(self, config: DecoderConfig, weights: Weights, options: VllmOptions) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(config, weights, options))
        except BaseException as error:
            self._failure = error
            self.events.put(DiedEvent(f"{type(error).__name__}: {error}"))
        finally:
            self._started.set()
            self._loop.close()

    async def _serve(self, config: DecoderConfig, weights: Weights, options: VllmOptions) -> None:
        with tempfile.TemporaryDirectory(prefix="duologue-") as folder:
            try:
                self._llm = AsyncLLM.from_engine_args(engine_args(config, weights, options, folder))
            except Exception as error:
                refused = loader.refusal(folder)
                if refused is None:
                    raise
                raise refused from error
            try:
                await self._prepare()
            except BaseException:
                self._llm.shutdown()
                raise
        # Answers have come, so both ends of vLLM's sockets have found each other. vLLM would leave their files.
        self._started.set()
        try:
            while (command := await self._commands.get()) is not None:
                await command
        finally:
            self._llm.shutdown()
            del self._llm
            for request in self._requests.values():
                await request.abort()
            # They end with the engine's process.
            if self._rows_tasks:
                await asyncio.wait(self._rows_tasks)

    async def _prepare(self) -> None:
        # Asked for once here, so that opening a request never waits for an answer in between.
        await self._llm.get_supported_tasks()
        address = hidden.new_address()
        server = await asyncio.start_unix_server(self._take_rows, address)
        await self._llm.collective_rpc("send_rows_to", args=(address,))
        await self._rows_connected.wait()
        server.close()
        self._llm.output_handler.add_done_callback(
            lambda _: self.events.put(DiedEvent("its engine process has ended")))
        self.config = self._llm.vllm_config

    async def _open(self, request: int, first: Input) -> None:
        self._requests[request] = Request(self._llm, str(request), first, self.events)

    async def _append(self, request: int, item: Input) -> None:
        self._requests[request].append(item)

    async def _abort(self, request: int) -> None:
        await self._requests.pop(request).abort()

    async def _take_rows(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        credentials = writer.get_extra_info("socket").getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, PEER_CREDENTIALS.size)
        _pid, user, _group = PEER_CREDENTIALS.unpack(credentials)
        task = asyncio.current_task()
        assert task is not None
        self._rows_tasks.add(task)
        with contextlib.closing(writer):
            if user != os.getuid():
                return
            self._rows_connected.set()
            frames: AsyncIterator[RowsFrame] = hidden.read(reader)
            async for frame in frames:
                self.events.put(frame)
