"""Where in a word its speech is: the pointer moves on from phone to phone, so no sound is said twice or left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice.network import Position

MAX_ADVANCE = 3
"""Phones the pointer passes in one frame at most: a phone shorter than 40 ms may be skipped."""
END = MAX_ADVANCE + 1
"""The move behind the word."""
MAX_HELD = 23
"""Frames a phone is held after its first; so a word always ends."""


class Pointer:
    """The pointer in one word, whose ``symbols`` are its phones and its boundary; ``after`` is the next symbol."""

    def __init__(self, symbols: Sequence[int], after: int) -> None:
        self._symbols, self._after = symbols, after
        self.place = 0
        self._held = 0
        self._begun = False

    @property
    def position(self) -> Position:
        """What the network is told."""
        following = self._symbols[self.place + 1] if self.place + 1 < len(self._symbols) else self._after
        return Position(self._symbols[self.place], following, self._held)

    @property
    def pausing(self) -> bool:
        """Whether the word's sound is over and its pause lasts."""
        return self.place == len(self._symbols) - 1

    def move(self, logits: NDArray[np.float32]) -> bool:
        """Move as is likeliest among what is allowed; False at the end of the word.

        A word has one frame at least and ends at its last phone or behind it; a phone is held ``MAX_HELD`` frames
        more than one at most.
        """
        allowed = np.full(END + 1, -np.inf, np.float32)
        left = len(self._symbols) - 1 - self.place
        allowed[:min(MAX_ADVANCE, left) + 1] = 0
        if self._held == MAX_HELD:
            allowed[0] = -np.inf
        if self._begun and left <= 1:
            allowed[END] = 0
        move = int((logits + allowed).argmax())
        if move == END:
            return False
        self.place += move
        self._held = 0 if move else self._held + 1
        self._begun = True
        return True
