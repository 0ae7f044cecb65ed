"""A telephone's call: one SIP dialog, one stream of RTP each way, no control channel."""

from __future__ import annotations

import asyncio
import math

from duologue.agent.logs import EventLog
from duologue.agent.transports.base import CallMedia, TransferFailed
from duologue.agent.transports.media_clock import MediaClock, Tick
from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sip.calls import CallEnded, Ended, EndReason, NotAcceptable, Route, SipCall
from duologue.agent.transports.sip.media.config import SipMedia
from duologue.agent.transports.sip.media.negotiation import Agreement, LocalMedia, Negotiator, NothingFits
from duologue.agent.transports.sip.media.rtp_session import RtpSession
from duologue.agent.transports.sip.media.udp_ports import PortPair
from duologue.agent.transports.sip.media.voice import Voice
from duologue.metrics import DROPS

_GRID_S = 0.005
"""Streams begin at multiples of this, so that one wake-up of the process serves several calls."""

_log = EventLog(__name__)


class SipTransport:
    """One call in or out; the owner of its ``SipCall``.

    ``answer`` or ``dialled`` brings up signalling, ``begin`` the media. After ``begin``, ``gone`` of the call is called
    exactly once, whoever ends it, with signalling's reason.
    """

    def __init__(self, call_id: str, call: CallMedia, config: SipMedia, route: Route, bind: str) -> None:
        """Take a pair of ports at the numeric address ``bind``. Raises ``NoPorts``; ``close`` gives them back."""
        self._log = _log.of(call_id)
        self._call = call
        self._config = config
        self._clock = asyncio.get_running_loop()
        ports = PortPair(config.bind or bind, config.ports)
        self._session = RtpSession(ports, self._packet, self._lost, self._fault, self._clock.time)
        self._negotiator = Negotiator(LocalMedia(route.local_host, ports.port, config.codecs,
                                                 config.srtp, offer_secure=route.secure))
        self._leg: SipCall | None = None
        self._voice: Voice | None = None
        self._agreement: Agreement | None = None
        self._agreed: asyncio.Future[None] = self._clock.create_future()
        self._begun = False
        self._ended: Ended | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timed_since = 0.0

    @property
    def name(self) -> str:
        """``sip``."""
        return "sip"

    # --- setting up -----------------------------------------------------------------------------------------

    def answer(self, leg: SipCall) -> None:
        """Take a call in and answer it at once. Raises ``NotAcceptable`` or ``CallEnded``."""
        if leg.offer is None:
            text = self._negotiator.offer()
        else:
            text = self._answer(leg.offer)
        self._leg = leg
        leg.attach(self)
        if leg.ended is not None:
            raise CallEnded(leg.ended.reason)
        leg.answer(text)

    def offer(self) -> str:
        """The offer for a call out."""
        return self._negotiator.offer()

    async def dialled(self, leg: SipCall) -> None:
        """Wait until a call out is answered. Raises ``CallEnded``."""
        self._leg = leg
        await self._agreed

    def begin(self) -> None:
        """Let the media flow, as soon as it is agreed on."""
        self._begun = True
        if self._ended is not None:
            self._call.gone(self._ended.reason)
        elif self._agreement is not None:
            self._start()

    def _start(self) -> None:
        now = self._clock.time()
        self._timed_since = now
        self._schedule(MediaClock(math.ceil(now / _GRID_S) * _GRID_S))
        assert self._agreement is not None
        self._log.info("connected", codec=self._agreement.codec.name, srtp=self._agreement.keys is not None,
                       keypad=self._agreement.keypad is not None)
        self._call.connected()

    # --- what signalling tells (CallOwner) ------------------------------------------------------------------

    async def on_offer(self, sdp: str) -> str:
        """Answer a new offer: hold, resume, another address; without one, make one."""
        return self._answer(sdp) if sdp else self._negotiator.offer()

    def on_answered(self, sdp: str) -> None:
        """Take the answer to an offer of ours."""
        try:
            self._agree(self._negotiator.accept(sdp))
        except NothingFits as why:
            raise NotAcceptable(str(why)) from why
        if not self._agreed.done():
            self._agreed.set_result(None)
        if self._begun and self._timer is None:
            self._start()

    def on_digits(self, digits: str) -> None:
        """Take keys told by INFO, unless they come as RTP events too: some phones send both."""
        if self._voice is None or not self._voice.keys_came:
            for key in digits:
                self._call.dtmf(key)

    def on_ended(self, ended: Ended) -> None:
        """The dialog is over."""
        if self._ended is not None:
            return
        self._ended = ended
        self._stop()
        if not self._agreed.done():
            self._agreed.set_exception(CallEnded(f"{ended.reason} {ended.status or ''} {ended.text}".strip()))
            self._agreed.exception()  # nobody may be waiting
        if self._begun:
            self._call.gone(ended.reason)

    def _answer(self, offer: str) -> str:
        try:
            text, agreement = self._negotiator.answer(offer)
        except NothingFits as why:
            raise NotAcceptable(str(why)) from why
        self._agree(agreement)
        return text

    def _agree(self, agreement: Agreement) -> None:
        before, self._agreement = self._agreement, agreement
        if self._voice is None:
            self._voice = Voice(self._call, agreement, self._session.send, self._clock.time)
        else:
            self._voice.apply(agreement)
        self._session.apply(agreement, self._voice.accepted)
        self._timed_since = self._clock.time()
        if before is not None and before.peer.hears != agreement.peer.hears:
            self._log.info("resumed" if agreement.peer.hears else "held")

    # --- while it lasts -------------------------------------------------------------------------------------

    def send(self, message: str) -> None:
        """A telephone has no control channel: the message is dropped."""
        DROPS.labels(what="event", reason="no_channel").inc()

    def press(self, keys: str) -> None:
        """Press keys at the other end (RFC 4733). Raises ``ValueError``, saying why they cannot be sent."""
        if self._voice is None:
            raise ValueError("the call is not up yet")
        self._voice.press(keys)

    async def transfer(self, target: str) -> None:
        """Have the other end call ``target`` instead, and hang up once it does.

        Raises ``ValueError`` for a target that cannot be called, ``TransferFailed`` otherwise; then the call goes on.
        """
        if self._leg is None:
            raise TransferFailed("the call is not up yet")
        try:
            outcome = await self._leg.transfer(target)
        except CallEnded as gone:
            raise TransferFailed(f"the call has ended: {gone}") from gone
        self._log.info("transferred", status=outcome.status)
        if not outcome.succeeded:
            raise TransferFailed(f"the target was not reached: {outcome.status} {outcome.text}".rstrip())
        self._leg.hang_up()

    def _packet(self, packet: RtpPacket) -> None:
        if self._timer is not None and self._voice is not None:
            self._voice.take(packet)

    def _lost(self, percent: int) -> None:
        if self._voice is not None:
            self._voice.expect_loss(percent)

    def _schedule(self, media: MediaClock) -> None:
        tick = media.next(self._clock.time())
        if tick.skipped:
            DROPS.labels(what="reply_frame", reason="late").inc(tick.skipped)
        self._timer = self._clock.call_at(tick.due, self._tick, media, tick)

    def _tick(self, media: MediaClock, tick: Tick) -> None:
        """One clock for both ways: each 20 ms that go out also let time pass for what comes in."""
        assert self._voice is not None
        try:
            self._voice.tick(tick.frame)
            self._session.tick()
        except Exception as fault:  # whatever it is, it ends this call and no other
            self._fault(fault)
        if self._timer is None:
            return
        if self._silent_for() >= self._config.timeout_s:
            self._give_up("lost")
        else:
            self._schedule(media)

    def _silent_for(self) -> float:
        """Seconds since anything came of a caller who should be heard."""
        assert self._agreement is not None
        if not (self._agreement.peer.hears and self._agreement.peer.speaks):
            return 0.0
        return self._clock.time() - max(self._session.heard_at, self._timed_since)

    # --- the end --------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Hang up and free everything; idempotent."""
        if self._leg is not None:
            self._leg.hang_up()
        self._stop()

    def _fault(self, fault: Exception) -> None:
        if self._ended is None:
            self._log.error("media_fault", fault=fault)
            self._give_up("media fault")

    def _give_up(self, reason: EndReason) -> None:
        """End the call for a reason that signalling does not know."""
        self._log.info("ended", reason=reason)
        self._ended = Ended(reason)
        self._stop()
        if self._leg is not None:
            self._leg.hang_up()
        if self._begun:
            self._call.gone(reason)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._session.close()
