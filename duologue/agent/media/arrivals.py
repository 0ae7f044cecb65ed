"""What the arrival times of packets teach: how long a missing one, or any at all, is worth waiting for."""

from __future__ import annotations

REORDER_MIN_MS = 20.0
REORDER_MAX_MS = 150.0
"""Shortest and longest wait for a missing packet; the longest is what a listener notices in a reply."""

STALL_MIN_MS = 60.0
STALL_MAX_MS = 300.0
"""Shortest and longest silence of the network before its time is filled with concealed samples."""

_FIRST_LATENESS_MS = 25.0  # assumed until a reordered packet has been seen
_MARGIN_MS = 5.0
_FORGET = 1 / 1000  # of the lateness, per packet: an e-fold in 20 s of 20 ms packets
_EASE = 1 / 16  # the gain of RFC 3550's own filter
_JITTER_SPREAD = 4.0  # mean deviations; a uniform delay spreads over 3 of them
_LARGEST_STEP_MS = 500.0  # one leap (a sender's clock that jumped) must not spoil the estimate for long


class Arrivals:
    """Learns from each packet's arrival; times are milliseconds of any steady clock."""

    def __init__(self) -> None:
        self.jitter_ms = 0.0
        """Interarrival jitter (RFC 3550 section 6.4.1)."""
        self._lateness = _FIRST_LATENESS_MS
        self._transit: float | None = None

    def arrived(self, now_ms: float, media_ms: float) -> None:
        """Take note of a packet whose timestamp, in milliseconds, is ``media_ms``."""
        transit = now_ms - media_ms
        if self._transit is not None:
            step = min(abs(transit - self._transit), _LARGEST_STEP_MS)
            self.jitter_ms += (step - self.jitter_ms) * _EASE
        self._transit = transit
        self._lateness -= self._lateness * _FORGET

    def restarted(self) -> None:
        """Do not compare the next packet's timestamp with the last one's."""
        self._transit = None

    def reordered(self, lateness_ms: float) -> None:
        """Take note of a packet that came this long after one sent later: up at once, down slowly."""
        if lateness_ms > self._lateness:
            self._lateness = min(lateness_ms, REORDER_MAX_MS)
        else:
            self._lateness += (lateness_ms - self._lateness) * _EASE

    @property
    def reorder_wait_ms(self) -> float:
        """How long to wait for a packet that later ones have overtaken before it counts as lost."""
        return min(max(self._lateness + _MARGIN_MS, REORDER_MIN_MS), REORDER_MAX_MS)

    def stall_limit_ms(self, packet_ms: float) -> float:
        """How long no packet at all may come, where one comes every ``packet_ms``, before time is filled."""
        return min(max(packet_ms + _JITTER_SPREAD * self.jitter_ms, STALL_MIN_MS), STALL_MAX_MS)
