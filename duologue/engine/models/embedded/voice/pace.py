"""Speaks faster or slower than the talker: sounds that last are shortened or held, bursts stay as they are.

A frame says how its 40 ms sound, so a sound is held by frames between it and the next: codes are of ordered levels, and
what lies between two levels is said by a level between them. A sound of one frame is never left out. What a word cannot
take is made up for by those after it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_MOST = 3
"""Frames made of one at most."""
_DEBT = 2.0
"""Frames made up for at most."""


class Pace:
    """One reply's pace."""

    def __init__(self) -> None:
        self._owed = 0.0

    def places(self, lasting: Sequence[bool], kept: Sequence[bool], rate: float) -> list[float]:
        """Where among the frames of a word to speak: whole numbers are frames, others lie between two of them.

        ``lasting`` says which may be held, ``kept`` which may not be left out. ``rate`` 2.0 is twice as fast.
        """
        chosen: list[float] = []
        for i, (long, must) in enumerate(zip(lasting, kept, strict=True)):
            self._owed = min(max(self._owed, -_DEBT), _DEBT) + 1 / rate
            count = min(max(round(self._owed), 1 if must else 0), _MOST if long else 1)
            self._owed -= count
            chosen += [i + part / count for part in range(count)]
        return chosen


def between(digits: NDArray[np.int32], places: Sequence[float]) -> NDArray[np.int32]:
    """The digits (n, width) at ``places`` among ``digits`` (frames, width); behind the last frame it stays."""
    at = np.array(places)
    before = at.astype(int)
    after = np.minimum(before + 1, len(digits) - 1)
    part = (at - before)[:, None]
    mixed: NDArray[np.int32] = np.rint(digits[before] * (1 - part) + digits[after] * part).astype(np.int32)
    return mixed
