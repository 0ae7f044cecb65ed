"""The telephone's door: makes a call of every INVITE that the engine has room for, and of every number dialled."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Protocol

from duologue.agent.call import Call
from duologue.agent.http.host import PartHealth, new_call_id
from duologue.agent.logs import EventLog
from duologue.agent.switchboard import MakeTransport
from duologue.agent.transports.base import CallMedia, Transport
from duologue.agent.transports.sip.calls import CallEnded, Credentials, Route, SipCall
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.media.udp_ports import NoPorts
from duologue.agent.transports.sip.transport import SipTransport
from duologue.agent.transports.sip.user_agent import UserAgent
from duologue.engine import Refused
from duologue.metrics import REFUSALS

_ASK_AGAIN_S = 1.0
"""How often a caller who hears it ring is tried again; a place in the queue lasts ten seconds without."""

_BUSY = ("capacity", "queue_full")
"""Refusals that are a busy line (486); others mean that this server cannot be used now (503), so that a proxy looks
for another."""

_log = EventLog(__name__)


class Board(Protocol):
    """What a door needs of the switchboard."""

    @property
    def has_room(self) -> bool:
        """Whether a caller would be taken at once."""

    async def take(self, call_id: str, make_transport: MakeTransport, *,
                       wishes: Mapping[str, Any] | None = None, ticket: str | None = None) -> Call:
        """Make a call. Raises ``Refused``."""


class SipDoor:
    """One SIP endpoint in front of a switchboard."""

    def __init__(self, config: SipConfig, board: Board) -> None:
        self._config = config
        self._board = board
        self._agent = UserAgent(config, self._on_invite)
        self._open = False

    @property
    def name(self) -> str:
        """``sip``."""
        return "sip"

    async def open(self) -> None:
        """Listen, and register with the providers. Raises ``OSError`` or ``ValueError``, saying what to change."""
        await self._agent.start()
        self._open = True

    def health(self) -> PartHealth:
        """Whether it listens, and every provider knows where."""
        if not self._open:
            return PartHealth(False, "not listening")
        missing = [each.registrar for each, active
                   in zip(self._config.registrations, self._agent.registered, strict=True) if not active]
        return PartHealth(not missing, f"not registered with {', '.join(missing)}" if missing else "")

    def drain(self) -> None:
        """Refuse calls in from now on; calls that live go on."""
        if self._open:
            self._agent.drain()

    async def close(self) -> None:
        """Hang up what is left, unregister, free everything; idempotent."""
        self._open = False
        await self._agent.close()

    async def dial(self, target: str, *, credentials: Credentials | None = None) -> Call:
        """Call a SIP URI, a registered phone's user or a number, and return the call once it is answered.

        Raises ``BadTarget``, ``Refused`` (the engine), ``NoPorts``, or ``CallEnded``, which says why nobody answered.
        """
        route = self._agent.route_to(target)
        call_id = new_call_id("sip")
        transport: SipTransport | None = None

        async def bring_up(media: CallMedia) -> Transport:
            nonlocal transport
            transport = SipTransport(call_id, media, self._config.media, route, self._interface(route))
            try:
                leg = self._agent.dial(target, transport.offer(), transport, credentials=credentials)
                _log.of(call_id).info("dialled", leg=leg.id)
                await transport.dialled(leg)
            except BaseException:
                await transport.close()
                raise
            return transport

        call = await self._board.take(call_id, bring_up)
        assert transport is not None
        transport.begin()
        return call

    async def _on_invite(self, leg: SipCall) -> None:
        if not self._config.media.queue_s and not self._board.has_room:
            # Not even asked: a place in the queue that nobody comes back for would keep others out for a while.
            REFUSALS.labels(reason="capacity").inc()
            leg.refuse(486, retry_after_s=self._config.limits.retry_after_s)
            return
        ticket: str | None = None
        until = asyncio.get_running_loop().time() + self._config.media.queue_s
        while True:
            try:
                await self._answer(leg, ticket)
                return
            except Refused as refused:
                ticket = refused.ticket
                if ticket is None or asyncio.get_running_loop().time() >= until:
                    wait = self._config.limits.retry_after_s if refused.eta_s is None else math.ceil(refused.eta_s)
                    leg.refuse(486 if refused.reason in _BUSY else 503, retry_after_s=max(wait, 1))
                    return
            except NoPorts as fault:
                _log.of(leg.id).error("no_rtp_ports", why=str(fault))
                leg.refuse(503, retry_after_s=self._config.limits.retry_after_s)
                return
            except CallEnded:
                return  # the caller gave up
            leg.ring()
            await asyncio.sleep(_ASK_AGAIN_S)
            if leg.ended is not None:
                return

    async def _answer(self, leg: SipCall, ticket: str | None) -> None:
        transport: SipTransport | None = None

        async def bring_up(media: CallMedia) -> Transport:
            nonlocal transport
            transport = SipTransport(leg.id, media, self._config.media, leg.route, self._interface(leg.route))
            try:
                transport.answer(leg)
            except BaseException:
                await transport.close()
                raise
            return transport

        await self._board.take(leg.id, bring_up, ticket=ticket)
        assert transport is not None
        transport.begin()

    def _interface(self, route: Route) -> str:
        """Where the listener that a route goes by is bound: what it advertises may be another machine's address."""
        return next((listen.host for listen in self._config.listen
                     if listen.transport == route.transport and listen.advertised.strip("[]") == route.local_host),
                    self._config.listen[0].host)
