"""The contract between signalling and whoever owns a call's media.

Signalling knows nothing of SDP: offers and answers are text that it carries. All methods are called on the event
loop; the synchronous ones never block.

A call in::

    async def on_invite(call: SipCall) -> None:
        owner = Owner(call)
        call.attach(owner)              # from here on the owner hears of the end, exactly once
        call.ring()
        call.answer(await owner.negotiate(call.offer))

A call out::

    call = user_agent.dial("sip:desk@192.0.2.7", offer, owner)
    # then owner.on_answered(sdp), or owner.on_ended(...)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

EndReason = Literal["hung up", "closed", "cancelled", "refused", "no answer", "lost", "media fault"]
"""``hung up``: the other end's BYE. ``closed``: our ``hang_up``. ``cancelled``: the caller gave up before an answer.
``refused``: a final answer of 300 or above, given or got. ``no answer``: nobody answered in time. ``lost``: the other
end no longer reacts. ``media fault``: the owner could not use what the other end answered."""


@dataclass(frozen=True)
class Ended:
    """How a call ended."""

    reason: EndReason
    status: int = 0
    """The final SIP status, where one ended the call; else 0."""
    text: str = ""
    """The status's phrase or the BYE's Reason header, as the other end put it."""


@dataclass(frozen=True)
class TransferOutcome:
    """What became of a REFER: the last status the other end reported of the new call (RFC 3515 section 2.4.5)."""

    status: int
    """200: the other end reached the target. 4xx-6xx: it refused, or did not reach it. 408: it never told."""
    text: str = ""

    @property
    def succeeded(self) -> bool:
        """Whether the target answered."""
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Credentials:
    """Digest credentials for calls out."""

    user: str
    password: str


@dataclass(frozen=True)
class Route:
    """How a target will be reached; what an offer for it must name."""

    transport: Literal["udp", "tcp", "tls"]
    local_host: str
    """The host to name in SDP: the listener's advertised address, without brackets."""

    @property
    def secure(self) -> bool:
        """Whether nobody on the way can read SDES keys in the SDP."""
        return self.transport == "tls"


class NotAcceptable(ValueError):  # noqa: N818 - the SIP status's name
    """An offer or answer cannot be used; answered 488. The text goes into the Warning header."""


class OfferRefused(RuntimeError):  # noqa: N818 - what happened
    """The other end refused our new offer; the session stays as it was (RFC 3261 section 14.1)."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status} {text}")
        self.status = status


class CallEnded(RuntimeError):  # noqa: N818 - what happened
    """The call had ended, or ended meanwhile."""


class BadTarget(ValueError):  # noqa: N818 - what it is
    """A target that cannot be dialled; the text says what to write instead."""


class CallOwner(Protocol):
    """What signalling calls. An exception out of any of these ends this call only, as a ``media fault``."""

    async def on_offer(self, sdp: str) -> str:
        """Answer the other end's new offer in a running call (hold, resume, new address). Raises ``NotAcceptable``.

        Never called a second time before the first has returned. An empty ``sdp`` asks for a fresh offer of ours (a
        re-INVITE without one); ``on_answered`` follows.
        """

    def on_answered(self, sdp: str) -> None:
        """Take the answer to our offer: of ``dial``, of ``answer`` to a delayed offer, or of an empty ``on_offer``.

        Raises ``NotAcceptable``: then the call is ended.
        """

    def on_digits(self, digits: str) -> None:
        """Take keys (``0-9*#A-D``) pressed at the other end, told by INFO."""

    def on_ended(self, ended: Ended) -> None:
        """Know that the call is over. Called exactly once, nothing follows."""


class SipCall(Protocol):
    """One call, in or out."""

    @property
    def id(self) -> str:
        """Name of the call in logs: ``sip_`` and 12 hex digits."""

    @property
    def caller(self) -> str:
        """URI of From."""

    @property
    def caller_name(self) -> str:
        """Display name of From; may be empty."""

    @property
    def called(self) -> str:
        """URI of To."""

    @property
    def user(self) -> str:
        """Who authenticated; empty if nobody was asked to."""

    @property
    def headers(self) -> Mapping[str, str]:
        """First value of each header of the INVITE, by its lower-case full name; empty for a call out."""

    @property
    def offer(self) -> str | None:
        """SDP offer of an INVITE in; None for a delayed offer: then what ``answer`` is given is the offer."""

    @property
    def route(self) -> Route:
        """How the call reaches its other end, and the host to name in SDP."""

    @property
    def ended(self) -> Ended | None:
        """How the call ended; None while it lives."""

    def attach(self, owner: CallOwner) -> None:
        """Name the owner of a call in. If the call has ended already, ``on_ended`` is called at once."""

    def ring(self) -> None:
        """Send 180 Ringing; nothing if the call is answered or over."""

    def answer(self, sdp: str) -> None:
        """Accept a call in with 200 and this answer (or offer, if ``offer`` is None); nothing if it is over.

        What is not acknowledged in time ends as ``lost``.
        """

    def refuse(self, status: int, text: str = "", retry_after_s: int | None = None) -> None:
        """Refuse a call in with a status of 300-699; nothing if it is answered or over. ``on_ended`` follows."""

    async def offer_again(self, sdp: str) -> str:
        """Send a new offer (re-INVITE) and return the answer; 491 is tried again after a while.

        Raises ``OfferRefused``, ``CallEnded``.
        """

    async def transfer(self, target: str) -> TransferOutcome:
        """Ask the other end to call ``target`` instead (blind transfer by REFER) and wait for what comes of it.

        The call goes on meanwhile; whoever asked hangs up. If the other end hangs up before it told the outcome, that
        is a 200 if it had taken the REFER. Raises ``BadTarget``, ``CallEnded``.
        """

    def hang_up(self) -> None:
        """End the call in whatever state: CANCEL, BYE or a 480 refusal; idempotent. ``on_ended`` is called before
        this returns.
        """


InviteHandler = Callable[[SipCall], Awaitable[None]]
"""Takes an incoming call, in a task of its own. If it returns or raises without having answered or refused the call,
the call is refused with 480 or 500; ``NotAcceptable`` is refused with 488."""
