"""Keys pressed, told by INFO: the fallback of equipment without RFC 4733."""

from __future__ import annotations

import re

from sipmessage import Request

from duologue.agent.transports.sip.signalling.wire import media_type

ACCEPTED = ("application/dtmf-relay", "application/dtmf")

_KEYS = "0123456789*#ABCD"
_SIGNAL = re.compile(r"^\s*Signal\s*=\s*(\S+)\s*$", re.IGNORECASE | re.MULTILINE)


def read_digits(info: Request) -> str:
    """Return the keys of an INFO whose type is one of ``ACCEPTED``. Raises ``ValueError``.

    Equipment numbers ``*`` and ``#`` 10 and 11 too, and the letters 12 to 15, as RFC 4733 does.
    """
    text = info.body.decode(errors="replace")
    if media_type(info) == "application/dtmf-relay":
        found = _SIGNAL.search(text)
        if found is None:
            raise ValueError("the body names no Signal")
        text = found[1]
    signal = text.strip().upper()
    if re.fullmatch(r"1[0-5]", signal):
        signal = _KEYS[int(signal)]
    if not re.fullmatch(r"[0-9*#A-D]", signal):
        raise ValueError("the signal is no key")
    return signal
