"""Whose packets count as the caller's, and so where ours go (symmetric RTP, RFC 4961): decided without I/O.

Behind a NAT the caller's packets come from an address that its SDP does not name, so the first valid source is
latched to. So that nobody takes over a call by sending to its port, a source that the SDP does not name must show
that it is a stream, and none is let in beside one that is alive.
"""

from __future__ import annotations

from duologue.agent.transports.rtp import RtpPacket
from duologue.agent.transports.sip.media.negotiation import Address

PROBATION = 3
"""Packets in sequence from one source before it is believed (RFC 3550 appendix A.1 asks for two)."""

SILENT_S = 2.0
"""A source that sent nothing for so long may be replaced by another: a NAT that was rebooted, a phone that moved."""


class SourceGuard:
    """Lets packets of one source in; ``source`` is where ours should go."""

    def __init__(self) -> None:
        self.source: Address | None = None
        self._named: Address | None = None
        self._heard_at = float("-inf")
        self._candidate: tuple[Address, int, int, int] | None = None  # source, SSRC, next number, packets so far

    def named(self, address: Address | None) -> None:
        """Say what the SDP names, at first and with each offer; when it changes, nobody is latched to any more."""
        if address != self._named:
            self._named = self.source = address
            self._candidate = None
            self._heard_at = float("-inf")

    def admit(self, source: Address, packet: RtpPacket, now: float, *, authentic: bool) -> bool:
        """Whether a packet is the caller's; ``authentic`` when SRTP has proved it. ``now`` is in seconds."""
        if source != self.source and not authentic:
            if now - self._heard_at < SILENT_S:
                return False
            if source != self._named and not self._shows_itself(source, packet):
                return False
        self.source, self._heard_at, self._candidate = source, now, None
        return True

    def _shows_itself(self, source: Address, packet: RtpPacket) -> bool:
        count = 1
        if self._candidate is not None and self._candidate[:3] == (source, packet.ssrc, packet.sequence_number):
            count = self._candidate[3] + 1
        self._candidate = (source, packet.ssrc, (packet.sequence_number + 1) & 0xFFFF, count)
        return count >= PROBATION
