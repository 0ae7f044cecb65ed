"""Blind transfer: what the other end tells of a REFER that it took (RFC 3515)."""

from __future__ import annotations

import re
from collections.abc import Callable

from sipmessage import Request, Response

from duologue.agent.transports.sip.calls import TransferOutcome
from duologue.agent.transports.sip.signalling.wire import media_type

_STATUS_LINE = re.compile(rb"\s*SIP/2\.0 ([1-6]\d\d)(?: ([^\r\n]*))?")


class Transfer:
    """One REFER of ours, until its outcome is known. ``on_outcome`` is called once."""

    def __init__(self, on_outcome: Callable[[TransferOutcome], None]) -> None:
        self._on_outcome = on_outcome
        self._last = TransferOutcome(100)
        self.taken = False
        self.done = False

    def on_response(self, response: Response) -> None:
        """Take the answer to the REFER."""
        if 200 <= response.code < 300:
            self.taken = True
        elif response.code >= 300:
            self._finish(TransferOutcome(response.code, response.phrase))

    def on_notify(self, notify: Request) -> int:
        """Take a NOTIFY of the event ``refer``; returns the status to answer it with."""
        if media_type(notify) != "message/sipfrag":
            return 415
        found = _STATUS_LINE.match(notify.body)
        if found is None:
            return 400
        self.taken = True  # a NOTIFY may overtake the 202
        self._last = TransferOutcome(int(found[1]), (found[2] or b"").decode(errors="replace"))
        state = (notify.headers.get("Subscription-State") or "").partition(";")[0].strip().lower()
        if self._last.status >= 200:
            self._finish(self._last)
        elif state == "terminated":
            self.give_up()
        return 200

    def other_end_hung_up(self) -> None:
        """A BYE after the REFER was taken is how many phones say that they reached the target."""
        self._finish(TransferOutcome(200, "the other end hung up") if self.taken
                     else TransferOutcome(487, "the call ended"))

    def we_hung_up(self) -> None:
        """Nothing more can be told in a call that is over."""
        self._finish(TransferOutcome(487, "the call ended"))

    def give_up(self) -> None:
        """No outcome will come any more."""
        self._finish(TransferOutcome(408, "the other end never told the outcome"))

    def _finish(self, outcome: TransferOutcome) -> None:
        if not self.done:
            self.done = True
            self._on_outcome(outcome)
