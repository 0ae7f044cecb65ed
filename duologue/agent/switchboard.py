"""Holds the calls: makes one for each offer, ends them, says how the server is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from duologue import metrics
from duologue.agent.call import Call
from duologue.agent.config import ConversationConfig
from duologue.agent.http.host import PartHealth, new_call_id
from duologue.agent.media.vad import VoiceActivity
from duologue.agent.transports.sdp import read_offer
from duologue.agent.transports.webrtc import WebRtcTransport, check_media
from duologue.engine import Engine, Refused


class Switchboard:
    """The ``CallHost`` of a server with one engine."""

    def __init__(self, engine: Engine, conversation: ConversationConfig) -> None:
        self._engine = engine
        self._conversation = conversation
        self._calls: dict[str, Call] = {}

    @property
    def models(self) -> Sequence[str]:
        """The one pipeline that is served."""
        return (self._engine.config.name,)

    async def offer(self, sdp: str, session: Mapping[str, Any] | None, ticket: str | None) -> tuple[str, str]:
        """Answer an offer; see ``CallHost``. Whatever fails or is cancelled, nothing is left behind."""
        read_offer(sdp)  # a bad offer must not cost anybody a place
        instructions = (session or {}).get("instructions")
        try:
            opened = self._engine.open(instructions=instructions if isinstance(instructions, str) else "",
                                       ticket=ticket)
        except Refused as refused:
            metrics.REFUSALS.labels(reason=refused.reason).inc()
            raise
        call_id = new_call_id()
        try:
            call = Call(call_id, opened, self._engine.config, self._conversation,
                        VoiceActivity(self._conversation.vad), wishes=session or {}, on_end=self._forget)
            transport = WebRtcTransport(call_id)
            answer = await transport.accept(sdp, call)
        except BaseException:
            await opened.close()
            raise
        self._calls[call_id] = call
        call.start(transport)
        return call_id, answer

    def _forget(self, call: Call) -> None:
        self._calls.pop(call.call_id, None)

    async def hang_up(self, call_id: str) -> bool:
        """End a call and wait until it has given everything back."""
        call = self._calls.get(call_id)
        if call is None:
            return False
        call.hang_up("hung up")
        await call.wait_closed()
        return True

    def health(self) -> Mapping[str, PartHealth]:
        """Every stage by its name, and whether a browser could be answered at all."""
        parts = {stage: PartHealth(process.up, process.detail)
                 for process in self._engine.health().values() for stage in process.stages}
        fault = check_media()
        return {**parts, "media": PartHealth(not fault, fault)}

    async def drain(self) -> None:
        """Wait until the last call is over; no new one is taken."""
        await self._engine.drain()
        await asyncio.gather(*(call.wait_closed() for call in list(self._calls.values())))

    async def close(self) -> None:
        """End every call, then the engine."""
        calls = list(self._calls.values())
        for call in calls:
            call.hang_up("server stopped")
        await asyncio.gather(*(call.wait_closed() for call in calls))
        await self._engine.close()
