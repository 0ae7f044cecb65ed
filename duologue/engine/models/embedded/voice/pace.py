"""Speaks faster or slower than the talker: sounds that last are shortened or held, bursts stay as they are.

A frame says how its 40 ms sound, so a sound lasts as long as its frames are repeated; a sound of one frame is never
left out. What a word cannot take is made up for by those after it.
"""

from __future__ import annotations

from collections.abc import Sequence

_MOST = 3
"""Times a frame is said at most."""
_DEBT = 2.0
"""Frames made up for at most."""


class Pace:
    """One reply's pace."""

    def __init__(self) -> None:
        self._owed = 0.0

    def frames(self, lasting: Sequence[bool], kept: Sequence[bool], rate: float) -> list[int]:
        """Which frames to say, some of them more than once.

        ``lasting`` says which may be repeated, ``kept`` which may not be left out. ``rate`` 2.0 is twice as fast.
        """
        chosen: list[int] = []
        for i, (long, must) in enumerate(zip(lasting, kept, strict=True)):
            self._owed = min(max(self._owed, -_DEBT), _DEBT) + 1 / rate
            count = min(max(round(self._owed), 1 if must else 0), _MOST if long else 1)
            self._owed -= count
            chosen += [i] * count
        return chosen
