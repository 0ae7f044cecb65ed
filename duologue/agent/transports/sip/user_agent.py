"""The telephone endpoint's face: calls in and out for an owner who knows media and nothing of SIP.

The contract is in ``calls``; what happens is decided in ``endpoint`` and the legs; here it meets asyncio.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from sipmessage import URI

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.calls import (
    BadTarget,
    CallOwner,
    Credentials,
    Ended,
    InviteHandler,
    NotAcceptable,
    Route,
    SipCall,
)
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.signalling.call_log import Veil
from duologue.agent.transports.sip.signalling.dialog import hop_to
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.endpoint import Endpoint
from duologue.agent.transports.sip.signalling.grammar import read_address, read_uri
from duologue.agent.transports.sip.signalling.leg import Leg
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg
from duologue.agent.transports.sip.signalling.leg_out import OutgoingLeg
from duologue.agent.transports.sip.signalling.live_call import LiveCall
from duologue.agent.transports.sip.signalling.registration import Registration
from duologue.agent.transports.sip.signalling.sockets import Sockets
from duologue.agent.transports.sip.signalling.wire import Hop

CLOSE_WAIT_S = 2.0
"""How long ``close`` waits for the answers to its BYEs."""
CLOSE_STEP_S = 0.02

_NUMBER = re.compile(r"(?:tel:)?(\+?[0-9*#().\-]+)")

_log = EventLog(__name__)


class UserAgent:
    """An endpoint with its sockets."""

    def __init__(self, config: SipConfig, on_invite: InviteHandler) -> None:
        """``on_invite`` takes each call in, in a task of its own."""
        self.veil = Veil(numbers=config.log_numbers)
        self._config = config
        self._on_invite = on_invite
        self._calls: dict[Leg, LiveCall] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._registrations: list[Registration] = []
        self._sockets = Sockets(config, self._receive, self._unreachable, self._in_use)
        self._endpoint: Endpoint | None = None
        self._closed = False

    async def start(self) -> None:
        """Bind all listeners and begin to register.

        Raises ``OSError`` that names the address that could not be bound, or ``ValueError`` for a registration that
        cannot be used.
        """
        locals_ = await self._sockets.start()
        self._endpoint = Endpoint(self._config, self.loop, self._sockets, locals_, self)
        try:
            self._registrations = [Registration(self._endpoint, each) for each in self._config.registrations]
        except ValueError as error:
            await self._sockets.close()
            raise ValueError(f"a registration cannot be used: {error}") from error
        for registration in self._registrations:
            registration.start()
        for local in locals_:
            _log.info("sip_listening", transport=local.transport, host=local.host, port=local.port)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop everything runs on."""
        return asyncio.get_running_loop()

    @property
    def endpoint(self) -> Endpoint:
        """The core, once started."""
        if self._endpoint is None:
            raise RuntimeError("start the user agent first")
        return self._endpoint

    @property
    def registered(self) -> tuple[bool, ...]:
        """Whether each registration of the config is active, for health."""
        return tuple(registration.active for registration in self._registrations)

    @property
    def live(self) -> int:
        """Calls that have not ended."""
        return len(self.endpoint.legs)

    def route_to(self, target: str) -> Route:
        """Say how ``target`` would be reached. Raises ``BadTarget``."""
        return self.route_of(self.plan(target)[1])

    def dial(self, target: str, offer: str, owner: CallOwner, *, credentials: Credentials | None = None) -> SipCall:
        """Call ``target``: a SIP URI, a registered phone's user name, or a number if there is a provider.

        Without ``credentials`` a provider's own are used. Raises ``BadTarget``. Everything else is told to the owner.
        """
        uri, hop, caller, known = self.plan(target)
        credentials = credentials or known
        leg = OutgoingLeg(self.endpoint, uri, caller, hop, offer,
                          DigestClient(credentials) if credentials is not None else None)
        call = LiveCall(self, leg, caller, uri, owner=owner)
        leg.listener = call
        self._calls[leg] = call
        full = self.live >= self._config.limits.calls
        self.endpoint.legs.add(leg)
        if full or self._closed:
            self.loop.call_soon(leg.end, Ended("refused", 503, "too many calls are under way"))
        else:
            self.loop.call_soon(leg.start)
        return call

    def drain(self) -> None:
        """Refuse new calls in with 503 from now on; live calls go on."""
        self.endpoint.draining = True

    async def close(self) -> None:
        """End every call (BYE, CANCEL, 503), unregister, and free everything; idempotent."""
        if self._closed or self._endpoint is None:
            return
        self._closed = True
        self.drain()
        for leg in list(self._endpoint.legs):
            if isinstance(leg, IncomingLeg):
                leg.refuse(503, retry_after_s=self._config.limits.retry_after_s, reason="closed")
            leg.hang_up()
        for registration in self._registrations:
            registration.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(int(CLOSE_WAIT_S / CLOSE_STEP_S)):
            if not self._endpoint.layer.waiting:
                break
            await asyncio.sleep(CLOSE_STEP_S)
        self._endpoint.layer.close()
        await self._sockets.close()

    def plan(self, target: str) -> tuple[URI, Hop, URI, Credentials | None]:
        """Say whom a target means, where it is, whom the call comes from and with which credentials."""
        endpoint, target = self.endpoint, target.strip()
        uri: URI | None = None
        with suppress(ValueError):
            uri = read_uri(target)
        ours = {self._config.realm, *(local.host for local in endpoint.locals)}
        user = target if uri is None else uri.user or "" if uri.host in ours and uri.port is None else ""
        bindings = endpoint.registrar.lookup(user)
        if bindings:
            source = bindings[0].source
            return bindings[0].contact, source, endpoint.caller_of(endpoint.locals[source.local]), None
        number = _NUMBER.fullmatch(target)
        if number is not None and self._registrations:
            provider = self._registrations[0]
            address = provider.address
            uri = URI(scheme=address.scheme, host=address.host, port=address.port,
                      user=re.sub(r"[().\-]", "", number[1]))
            return uri, provider.hop, address, provider.credentials
        if uri is None or not uri.host:
            raise BadTarget(f"{target!r} cannot be dialled: write a SIP URI such as sip:desk@192.0.2.7, the name of a "
                            "user whose phone is registered, or a number if 'registrations' names a provider")
        for provider in self._registrations:
            if uri.host == provider.registrar.host:
                return uri, provider.hop, provider.address, provider.credentials
        try:
            hop = endpoint.local_of(hop_to(uri, fallback=endpoint.locals[0].transport))
        except ValueError as error:
            raise BadTarget(str(error)) from None
        return uri, hop, endpoint.caller_of(endpoint.locals[hop.local]), None

    def route_of(self, hop: Hop) -> Route:
        """What an owner may know of a hop."""
        return Route(hop.transport, self.endpoint.locals[hop.local].host.strip("[]"))

    # --- the endpoint's ------------------------------------------------------------------------------------------

    def on_invite(self, leg: IncomingLeg) -> None:
        """Hand a call in to the handler."""
        caller, called = (read_address(leg.invite.headers[name]) for name in ("From", "To"))
        call = LiveCall(self, leg, caller.uri, called.uri, caller.name)
        leg.listener = call
        self._calls[leg] = call
        self.spawn(self._handle(call))

    def on_leg_answered(self, leg: Leg) -> None:
        """Note it in the register."""
        self._calls[leg].entry.answered()

    def on_leg_ended(self, leg: Leg) -> None:
        """Let it go."""
        self._calls.pop(leg, None)

    async def _handle(self, call: LiveCall) -> None:
        try:
            await self._on_invite(call)
        except NotAcceptable as why:
            call.refuse(488, str(why))
        except Exception as fault:
            _log.of(call.id).error("invite_handler_failed", fault=fault)
            call.refuse(500)
            call.hang_up()
        else:
            call.refuse(480)

    def _receive(self, data: bytes, source: Hop) -> None:
        if self._endpoint is not None:
            self._endpoint.receive(data, source)

    def _unreachable(self, hop: Hop) -> None:
        if self._endpoint is not None:
            self._endpoint.unreachable(hop)

    def _in_use(self, hop: Hop) -> bool:
        registered = any(registration.hop == hop for registration in self._registrations)
        return registered or any(leg.source == hop for leg in self.endpoint.legs)

    def spawn(self, what: Coroutine[Any, Any, None]) -> None:
        """Run something of a call's."""
        task = asyncio.ensure_future(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

