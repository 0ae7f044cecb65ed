"""One call as its owner sees it: owner and leg speak to each other through it, and offers are asked one by one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sipmessage import URI

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.calls import (
    CallEnded,
    CallOwner,
    Ended,
    NotAcceptable,
    OfferRefused,
    TransferOutcome,
)
from duologue.agent.transports.sip.signalling.call_log import CallEntry
from duologue.agent.transports.sip.signalling.leg import Leg
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg

if TYPE_CHECKING:
    from duologue.agent.transports.sip.user_agent import UserAgent

_T = TypeVar("_T")

_log = EventLog(__name__)


class LiveCall:
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


def _settle(done: asyncio.Future[_T], outcome: _T) -> None:
    """Who waited may have been cancelled."""
    if not done.done():
        done.set_result(outcome)
