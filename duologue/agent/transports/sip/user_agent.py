"""The telephone endpoint's face: calls in and out for an owner who knows media and nothing of SIP.

The contract is in ``calls``; what happens is decided in ``endpoint`` and the legs; here it meets asyncio.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from sipmessage import URI

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.call_log import CallEntry, Veil
from duologue.agent.transports.sip.calls import (
    BadTarget,
    CallEnded,
    CallOwner,
    Credentials,
    Ended,
    InviteHandler,
    NotAcceptable,
    OfferRefused,
    Route,
    SipCall,
    TransferOutcome,
)
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.dialog import hop_to
from duologue.agent.transports.sip.digest import DigestClient
from duologue.agent.transports.sip.endpoint import Endpoint
from duologue.agent.transports.sip.grammar import read_address, read_uri
from duologue.agent.transports.sip.leg import Leg
from duologue.agent.transports.sip.leg_in import IncomingLeg
from duologue.agent.transports.sip.leg_out import OutgoingLeg
from duologue.agent.transports.sip.registration import Registration
from duologue.agent.transports.sip.sockets import Sockets
from duologue.agent.transports.sip.wire import Hop

CLOSE_WAIT_S = 2.0
"""How long ``close`` waits for the answers to its BYEs."""
CLOSE_STEP_S = 0.02

_NUMBER = re.compile(r"(?:tel:)?(\+?[0-9*#().\-]+)")

_log = EventLog(__name__)

_T = TypeVar("_T")


class Call:
    """One call: a ``SipCall`` for its owner, a listener for its leg."""

    def __init__(self, agent: UserAgent, leg: Leg, caller: URI, called: URI, caller_name: str = "",
                 owner: CallOwner | None = None) -> None:
        self.id = f"sip_{secrets.token_hex(6)}"
        self.caller = str(caller)
        self.called = str(called)
        self.caller_name = caller_name
        self.user = leg.user if isinstance(leg, IncomingLeg) else ""
        self.offer = leg.offer if isinstance(leg, IncomingLeg) else None
        self.headers: Mapping[str, str] = (
            {name.lower(): leg.invite.headers[name] for name in leg.invite.headers.keys()}  # noqa: SIM118
            if isinstance(leg, IncomingLeg) else {})
        self.route = agent.route_of(leg.source)
        self._agent = agent
        self._leg = leg
        self._owner = owner
        self._offers = asyncio.Lock()
        self._offer_number = 0
        self.entry = CallEntry(agent.loop, agent.veil, self.id, "in" if isinstance(leg, IncomingLeg) else "out",
                               caller, called, self.route.transport)

    # --- the owner's -------------------------------------------------------------------------------------------

    @property
    def ended(self) -> Ended | None:
        """How the call ended; None while it lives."""
        return self._leg.ended

    def attach(self, owner: CallOwner) -> None:
        """See ``SipCall.attach``."""
        if self._owner is not None:
            raise RuntimeError("a call has one owner")
        self._owner = owner
        if self._leg.ended is not None:
            owner.on_ended(self._leg.ended)

    def ring(self) -> None:
        """See ``SipCall.ring``."""
        if isinstance(self._leg, IncomingLeg):
            self._leg.ring()

    def answer(self, sdp: str) -> None:
        """See ``SipCall.answer``."""
        if isinstance(self._leg, IncomingLeg):
            self._leg.answer(sdp)

    def refuse(self, status: int, text: str = "", retry_after_s: int | None = None) -> None:
        """See ``SipCall.refuse``."""
        if not 300 <= status <= 699:
            raise ValueError("a refusal has a status from 300 to 699")
        if isinstance(self._leg, IncomingLeg):
            self._leg.refuse(status, text, retry_after_s)

    async def offer_again(self, sdp: str) -> str:
        """See ``SipCall.offer_again``."""
        done: asyncio.Future[str | OfferRefused | CallEnded] = self._agent.loop.create_future()
        self._leg.reoffers.offer(sdp, partial(_settle, done))
        outcome = await done
        if isinstance(outcome, str):
            return outcome
        raise outcome

    async def transfer(self, target: str) -> TransferOutcome:
        """See ``SipCall.transfer``."""
        uri = self._agent.plan(target)[0]
        if self._leg.ended is not None or not self._leg.confirmed:
            raise CallEnded("only a call that is up can be transferred")
        done: asyncio.Future[TransferOutcome] = self._agent.loop.create_future()
        self._leg.transfer(str(uri), partial(_settle, done))
        return await done

    def hang_up(self) -> None:
        """See ``SipCall.hang_up``."""
        self._leg.hang_up()

    # --- the leg's -----------------------------------------------------------------------------------------------

    def on_offer(self, sdp: str) -> None:
        """Ask the owner, one offer after the other."""
        self._offer_number += 1
        self._agent.spawn(self._negotiate(sdp, self._offer_number))

    def on_offer_withdrawn(self) -> None:
        """What the owner answers now is not sent."""
        self._offer_number += 1

    def on_answered(self, sdp: str) -> None:
        """Tell the owner."""
        if self._owner is not None:
            self._owner.on_answered(sdp)

    def on_digits(self, digits: str) -> None:
        """Tell the owner."""
        if self._owner is not None:
            self._owner.on_digits(digits)

    def on_ended(self, ended: Ended) -> None:
        """Tell the owner."""
        self.entry.ended(ended)
        if self._owner is not None:
            self._owner.on_ended(ended)

    async def _negotiate(self, sdp: str, number: int) -> None:
        async with self._offers:
            if self._leg.ended is not None or self._owner is None or number != self._offer_number:
                return
            try:
                answer = await self._owner.on_offer(sdp)
            except NotAcceptable as why:
                if number == self._offer_number:
                    self._leg.refuse_offer(str(why))
            except Exception as fault:
                _log.of(self.id).error("owner_failed", fault=fault)
                self._leg.hang_up("media fault")
            else:
                if number == self._offer_number:
                    self._leg.accept_offer(answer)


class UserAgent:
    """An endpoint with its sockets."""

    def __init__(self, config: SipConfig, on_invite: InviteHandler) -> None:
        self.veil = Veil(numbers=config.log_numbers)
        self._config = config
        self._on_invite = on_invite
        self._calls: dict[Leg, Call] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._registrations: list[Registration] = []
        self._sockets = Sockets(config, self._receive, self._unreachable, self._in_use)
        self._endpoint: Endpoint | None = None
        self._closed = False

    async def start(self) -> None:
        """See ``UserAgentFace.start``."""
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
        """See ``UserAgentFace.route_to``."""
        return self.route_of(self.plan(target)[1])

    def dial(self, target: str, offer: str, owner: CallOwner, *, credentials: Credentials | None = None) -> SipCall:
        """See ``UserAgentFace.dial``."""
        uri, hop, caller, known = self.plan(target)
        credentials = credentials or known
        leg = OutgoingLeg(self.endpoint, uri, caller, hop, offer,
                          DigestClient(credentials) if credentials is not None else None)
        call = Call(self, leg, caller, uri, owner=owner)
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
        """See ``UserAgentFace.drain``."""
        self.endpoint.draining = True

    async def close(self) -> None:
        """See ``UserAgentFace.close``."""
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
        call = Call(self, leg, caller.uri, called.uri, caller.name)
        leg.listener = call
        self._calls[leg] = call
        self.spawn(self._handle(call))

    def on_leg_answered(self, leg: Leg) -> None:
        """Note it in the register."""
        self._calls[leg].entry.answered()

    def on_leg_ended(self, leg: Leg) -> None:
        """Let it go."""
        self._calls.pop(leg, None)

    async def _handle(self, call: Call) -> None:
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


def _settle(done: asyncio.Future[_T], outcome: _T) -> None:
    """Who waited may have been cancelled."""
    if not done.done():
        done.set_result(outcome)
