"""Keeps a running call's session timer (RFC 4028): refreshes it, or ends the call when nobody does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import CallEnded, OfferRefused
from duologue.agent.transports.sip.signalling import session_timer
from duologue.agent.transports.sip.signalling.session_timer import Role, SessionTimer
from duologue.agent.transports.sip.signalling.transaction_layer import Timer
from duologue.agent.transports.sip.signalling.wire import seconds_in

if TYPE_CHECKING:
    from duologue.agent.transports.sip.signalling.leg import Leg

RETRY_S = 10.0
"""A refresh that was refused for the moment is tried again after so long."""


class Refresher:
    """One leg's session timer."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg
        self._timers: list[Timer] = []
        self._min_se = 0

    def agreed(self, timer: SessionTimer | None, role: Role) -> None:
        """Start anew with what an INVITE or UPDATE agreed in which we had ``role``; None: no session timers."""
        self.stop()
        if timer is None:
            return
        if timer.refresher == role:
            self._after(timer.refresh_after_s(), self._refresh)
            self._after(timer.interval_s, self._leg.lost)
        else:
            self._after(timer.give_up_after_s(), self._leg.lost)

    def stop(self) -> None:
        """Let no timer fire any more."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

    def _after(self, delay_s: float, then: Callable[[], None]) -> None:
        self._timers.append(self._leg.clock.call_at(self._leg.clock.time() + delay_s, then))

    def _refresh(self) -> None:
        leg = self._leg
        if "UPDATE" not in leg.peer_allows:
            leg.reoffers.offer(leg.local_sdp, self._reoffered)
            return

        def build() -> Request:
            request = leg.request("UPDATE")
            session_timer.ask(request, leg.config.session_timers, self._min_se, "uac")
            return request

        leg.ask(build, self._updated)

    def _updated(self, response: Response, _request: Request) -> None:
        if self._leg.ended is not None or response.code < 200:
            return
        if response.code < 300:
            self._leg.dialog.refresh_target(response)
            self.agreed(session_timer.accept(response), "uac")
        elif response.code in (408, 481):
            self._leg.lost()
        elif response.code == 422 and (seconds_in(response, "Min-SE") or 0) > self._min_se:
            self._min_se = seconds_in(response, "Min-SE") or 0
            self._refresh()
        else:
            if response.code in (405, 501):
                self._leg.peer_allows.discard("UPDATE")
            self._after(RETRY_S, self._refresh)

    def _reoffered(self, outcome: str | OfferRefused | CallEnded) -> None:
        if self._leg.ended is not None:
            return
        if isinstance(outcome, str):
            self._leg.answered_with(outcome)
        else:
            self._after(RETRY_S, self._refresh)
