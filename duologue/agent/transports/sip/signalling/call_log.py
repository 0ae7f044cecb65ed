"""The register of calls in the log: started, answered, ended; who called whom only if asked for."""

from __future__ import annotations

import hashlib
import re
import secrets

from sipmessage import URI

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.calls import Ended
from duologue.agent.transports.sip.signalling.transaction_layer import Clock

_log = EventLog(__name__)


class Veil:
    """Hides the user part of URIs: the same caller has the same name in one run's log, and nobody can say which."""

    def __init__(self, *, numbers: bool) -> None:
        """``numbers``: show them in clear."""
        self._numbers = numbers
        self._key = secrets.token_bytes(16)

    def uri(self, uri: URI) -> str:
        """Return what the log may say of a URI."""
        if self._numbers:
            return str(uri)
        if uri.user is None:
            return f"{uri.scheme}:{uri.host}"
        digits = re.sub(r"[-.()\s]", "", uri.user)
        name = hashlib.blake2s(digits.encode(), key=self._key, digest_size=4).hexdigest()
        return f"{uri.scheme}:#{name}@{uri.host}" if uri.host else f"{uri.scheme}:#{name}"


class CallEntry:
    """One call's lines."""

    def __init__(self, clock: Clock, veil: Veil, call: str, direction: str, caller: URI, called: URI,
                 transport: str) -> None:
        """Log that the call started. ``direction`` is ``in`` or ``out``."""
        self._clock = clock
        self._log = _log.of(call)
        self._started_at = clock.time()
        self._answered_at: float | None = None
        self._log.info("sip_call_started", direction=direction, caller=veil.uri(caller), called=veil.uri(called),
                       transport=transport)

    def answered(self) -> None:
        """Log the answer."""
        self._answered_at = self._clock.time()
        self._log.info("sip_call_answered", after_s=round(self._answered_at - self._started_at, 3))

    def ended(self, ended: Ended) -> None:
        """Log the end."""
        now = self._clock.time()
        talked = 0.0 if self._answered_at is None else now - self._answered_at
        self._log.info("sip_call_ended", reason=ended.reason, status=ended.status, duration_s=round(talked, 3),
                       held_s=round(now - self._started_at, 3))
