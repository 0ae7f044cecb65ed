"""Speaks faster or slower than the talker would: its sounds are left sooner, or those that can last are held.

The network goes on from each frame as it always does, so a sound that is held is one it might have held itself.
"""

from __future__ import annotations

_DUE = 0.5
"""Frames owed or ahead from which something is done about it."""
_MOST = 3.0
"""Frames owed or ahead that are remembered: bursts in a row are not paid for by one long vowel."""


class Pace:
    """One reply's pace; ``rate`` 2.0 is twice as fast."""

    def __init__(self) -> None:
        self.rate = 1.0
        self._owed = 0.0

    def holds(self) -> bool:
        """Whether to say the sound for one frame more, where the talker would go on and the sound can last."""
        if self._owed < _DUE:
            return False
        self._owed -= 1
        return True

    def hurries(self) -> bool:
        """Whether to go on, where the talker would say the sound for one frame more."""
        if self._owed > -_DUE:
            return False
        self._owed += 1
        return True

    def said(self) -> None:
        """Count a frame of the talker's own."""
        self._owed = min(max(self._owed + 1 / self.rate - 1, -_MOST), _MOST)
