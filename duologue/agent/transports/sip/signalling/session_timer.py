"""Session timers (RFC 4028): who refreshes a call and when it is given up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sipmessage import Request, Response

from duologue.agent.transports.sip.config import SipSessionTimers
from duologue.agent.transports.sip.signalling.wire import listed

Role = Literal["uac", "uas"]


class TooSmall(ValueError):  # noqa: N818 - the status's name
    """A session interval below ours; answered 422 with Min-SE."""


@dataclass(frozen=True)
class SessionTimer:
    """What was agreed in one INVITE or UPDATE."""

    interval_s: int
    refresher: Role
    """``uac``: who sent the request this was agreed in."""

    def refresh_after_s(self) -> float:
        """When the refresher refreshes (section 10: half the interval)."""
        return self.interval_s / 2

    def give_up_after_s(self) -> float:
        """When the other one hangs up (section 10: the lesser of 32 s and a third before the interval's end)."""
        return self.interval_s - min(32.0, self.interval_s / 3)

    def header(self) -> str:
        """The Session-Expires value."""
        return f"{self.interval_s};refresher={self.refresher}"


def ask(request: Request, timers: SipSessionTimers, min_s: int, refresher: Role | None = None) -> None:
    """Ask for a session interval in our INVITE or UPDATE; ``min_s`` is the largest Min-SE that was met."""
    interval = max(timers.expires_s, min_s)
    request.headers.set("Session-Expires", f"{interval};refresher={refresher}" if refresher else str(interval))
    request.headers.set("Min-SE", str(max(timers.min_s, min_s)))


def agree(request: Request, timers: SipSessionTimers) -> SessionTimer:
    """Decide as the side that is asked (section 9). Raises ``TooSmall``, ``ValueError``.

    A caller without the extension is refreshed by us; one that has it does so itself unless it wants otherwise.
    """
    supported = "timer" in listed(request, "Supported") + listed(request, "Require")
    asked = read_expires(request)
    least = max(_seconds(request.headers.get("Min-SE") or "0"), timers.min_s)
    if asked is None:
        return SessionTimer(max(timers.expires_s, least), "uac" if supported else "uas")
    interval, refresher = asked
    if interval < timers.min_s:
        if supported:
            raise TooSmall(f"the session interval is below {timers.min_s} s")
        interval = timers.min_s
    if not supported:
        refresher = "uas"
    return SessionTimer(max(min(interval, timers.expires_s), least), refresher or "uac")


def accept(response: Response) -> SessionTimer | None:
    """Read what the other end decided; None if it has no session timers, and then there are none."""
    try:
        decided = read_expires(response)
    except ValueError:
        return None
    return SessionTimer(decided[0], decided[1] or "uac") if decided is not None else None


def read_expires(message: Request | Response) -> tuple[int, Role | None] | None:
    """Read Session-Expires: seconds and the refresher, if it is named. Raises ``ValueError``."""
    value = message.headers.get("Session-Expires")
    if value is None:
        return None
    seconds, *parameters = (part.strip() for part in value.split(";"))
    refresher: Role | None = None
    for parameter in parameters:
        name, _, role = (part.strip().lower() for part in parameter.partition("="))
        if name == "refresher":
            refresher = "uac" if role == "uac" else "uas" if role == "uas" else None
    return _seconds(seconds), refresher


def _seconds(text: str) -> int:
    text = text.partition(";")[0].strip()
    if not re.fullmatch(r"\d{1,9}", text):
        raise ValueError("a session interval is no number")
    return int(text)
