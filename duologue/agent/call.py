"""One call's life: a transport, an engine session and the exchange between them, from connect to hang-up.

The only async glue: everything that happens in a call is in ``exchange.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict
from typing import Any

from duologue import metrics
from duologue.agent.config import ConversationConfig
from duologue.agent.exchange import Exchange
from duologue.agent.logs import EventLog
from duologue.agent.ports import Ear, Session
from duologue.agent.realtime import events as ev
from duologue.agent.transports.base import Telephone, Transport
from duologue.engine import PipelineConfig

_log = EventLog(__name__)


class Call:
    """One caller. ``media`` is what the transport is given of it."""

    def __init__(self, call_id: str, session: Session, pipeline: PipelineConfig, config: ConversationConfig,
                 ear: Ear, *, wishes: Mapping[str, Any] | None = None,
                 on_end: Callable[[Call], None] = lambda _call: None) -> None:
        """``wishes`` is the client's own session object, ``on_end`` is called once when all is given back.

        Raises ``BadSessionError`` for wishes that make no session.
        """
        self.call_id = call_id
        self.outcome = ""
        self._log = _log.of(call_id)
        self._session = session
        self._on_end = on_end
        self._transport: Transport | None = None
        self.telephone: Telephone | None = None
        """What can be done with a telephone's call; None on any other transport."""
        self.media = Exchange(session, pipeline, config, ear, wishes=wishes or {}, emit=self._emit,
                              on_end=self._over, log=self._log)
        self._events_sent = 0
        self._closed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, transport: Transport, telephone: Telephone | None = None) -> None:
        """Begin to carry the engine's events to ``transport``; ``telephone`` is what more it offers, if it is one."""
        self._transport = transport
        self.telephone = telephone
        metrics.CALLS_LIVE.labels(transport=transport.name).inc()
        self._spawn(self._follow_engine())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_engine(self) -> None:
        try:
            async for event in self._session.outputs():
                self.media.take(event)
        except Exception as fault:
            self._log.error("call_failed", fault=fault)
            self.media.failed()
        else:
            self.hang_up("engine")

    def hang_up(self, reason: str) -> None:
        """End the call; idempotent. ``reason`` goes to the log and the metrics."""
        self.media.gone(reason)

    async def wait_closed(self) -> None:
        """Wait until the call has given everything back."""
        await self._closed.wait()

    def _over(self, reason: str) -> None:
        self.outcome = reason
        self._spawn(self._give_back())

    async def _give_back(self) -> None:
        try:
            with contextlib.suppress(Exception):
                await self._session.close()
        finally:
            transport = self._transport
            try:
                if transport is not None:
                    with contextlib.suppress(Exception):
                        await transport.close()
            finally:
                if transport is not None:
                    metrics.CALLS_LIVE.labels(transport=transport.name).dec()
                    metrics.CALLS.labels(transport=transport.name, outcome=self.outcome).inc()
                self._log.info("call_ended", outcome=self.outcome, **asdict(self.media.tally))
                self._closed.set()
                self._on_end(self)

    def _emit(self, event: ev.ServerEvent) -> None:
        if self._transport is not None:
            self._events_sent += 1
            numbered = event.model_copy(update={"event_id": f"event_{self.call_id}_{self._events_sent}"})
            self._transport.send(numbered.model_dump_json(exclude_none=True))
