"""Keys pressed on a telephone, as RTP events (RFC 4733): one key a press, however often its packets come."""

from __future__ import annotations

import struct
from collections import OrderedDict, deque
from typing import NamedTuple

from duologue.agent.transports.base import FRAME_MS

KEYS = "0123456789*#ABCD"
"""Keys by their event code (RFC 4733 section 3.2, table 3)."""

MAX_WAITING = 64
"""Keys that may wait to be sent."""

_EVENT = struct.Struct("!BBH")
_END = 0x80
_LONGEST = 0xFFFF  # a longer press goes on in another event (RFC 4733 section 2.5.1.3)
_REMEMBERED = 16  # presses whose stragglers are known

_TONE_MS = 100  # RFC 4733 gives no length; ITU-T Q.24 lets receivers want 40 ms, gateways make tones of it again
_GAP_MS = 60  # Q.24: 40 ms at least
_ENDS = 3  # RFC 4733 section 2.5.1.4
_VOLUME = 10  # dB below 0 dBm0 (RFC 4733 section 2.3.4), as loud as telephones make them


class KeypadReceiver:
    """Tells presses from the packets of each: by their timestamp, which all packets of one press share."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._last: tuple[int, int, bool] | None = None  # newest event's code, duration, whether it has ended

    def take(self, timestamp: int, payload: bytes) -> str:
        """Take one event packet; returns the key at its first packet, else nothing.

        What is no key (a flash hook, a tone of a modem) and what is too short to be an event gives nothing.
        """
        if len(payload) < _EVENT.size:
            return ""
        code, flags, duration = _EVENT.unpack_from(payload)
        if code >= len(KEYS):
            return ""
        ended = bool(flags & _END)
        if timestamp in self._seen:
            if next(reversed(self._seen)) == timestamp:
                self._last = (code, duration, ended or (self._last is not None and self._last[2]))
            return ""
        goes_on = self._last is not None and self._last == (code, _LONGEST, False)
        self._seen[timestamp] = None
        while len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._last = (code, duration, ended)
        return "" if goes_on else KEYS[code]


class EventPacket(NamedTuple):
    """What to send instead of voice: the frame (counted in frames) its timestamp is that of, and its marker bit."""

    frame: int
    payload: bytes
    marker: bool


class KeypadSender:
    """Sends keys one after another, each for 100 ms, with a pause between; ``clock`` counts durations, in Hz."""

    def __init__(self, clock: int) -> None:
        self._step = clock * FRAME_MS // 1000
        self._keys: deque[str] = deque()
        self._began: int | None = None
        self._ends = 0
        self._free_at = 0

    def press(self, keys: str) -> None:
        """Send ``keys`` when those before are through. Raises ``ValueError`` for what is no key, or for too many."""
        if unknown := sorted(set(keys) - set(KEYS)):
            raise ValueError(f"not on a telephone: {' '.join(unknown)}")
        if len(self._keys) + len(keys) > MAX_WAITING:
            raise ValueError(f"at most {MAX_WAITING} keys can wait to be sent")
        self._keys.extend(keys)

    @property
    def busy(self) -> bool:
        """Whether there is a key to send or being sent."""
        return bool(self._keys)

    def next(self, frame: int) -> EventPacket | None:
        """What to send in ``frame`` instead of voice; None for voice. Frames must rise."""
        if not self._keys or frame < self._free_at:
            return None
        first = self._began is None
        if self._began is None:
            self._began = frame
        length = min(frame - self._began + 1, _TONE_MS // FRAME_MS)
        over = length == _TONE_MS // FRAME_MS
        payload = _EVENT.pack(KEYS.index(self._keys[0]), (_END if over else 0) | _VOLUME, length * self._step)
        packet = EventPacket(self._began, payload, first)
        self._ends += over
        if self._ends == _ENDS:
            self._keys.popleft()
            self._began, self._ends = None, 0
            self._free_at = frame + 1 + _GAP_MS // FRAME_MS
        return packet
