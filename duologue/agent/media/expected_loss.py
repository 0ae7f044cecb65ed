"""How much in-band FEC the other side needs."""

from __future__ import annotations


class ExpectedLoss:
    """What loss to protect the reply against, from the peer's receiver reports: up at once, down by halves.

    Without loss the encoder makes no FEC, which spares a third of its time and some bits.
    """

    def __init__(self) -> None:
        self.percent = 0
        """Loss to expect, 0 to 50."""

    def reported(self, fraction_lost: int) -> int:
        """Take one report, in 1/256 (RFC 3550 section 6.4.1); returns the new ``percent``."""
        now = min(round(fraction_lost * 100 / 256), 50)
        self.percent = max(now, self.percent // 2)
        return self.percent
