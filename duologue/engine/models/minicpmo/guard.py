"""Notices a talker that has lost its thread: it repeats itself, or is silent where it has words to say."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pydantic import Field

from duologue.strict import Strict


class GuardOptions(Strict):
    """When a talker counts as lost. Real speech holds a sound for some ten codes of 40 ms, and pauses for a second."""

    codes: int = Field(default=50, gt=0)
    """So many codes in a row that are silent, or each what it was ``period`` codes before."""
    period: int = Field(default=12, gt=0)
    """The longest loop looked for, in codes."""


class CodeGuard:
    """One reply's. Its work per code does not grow with the reply."""

    def __init__(self, options: GuardOptions, silence_code: int) -> None:
        self._most = options.codes
        self._silence_code = silence_code
        self._past: deque[int] = deque(maxlen=options.period)
        self._loops = [0] * options.period
        """How many codes in a row were what was said 1, 2, 3, ... codes before."""
        self._silent = 0
        """Silent codes in a row, of units with words."""

    def watch(self, codes: Sequence[int], *, words: bool) -> str | None:
        """Take the next ``codes``; says ``silence`` or ``loop``, and begins to count anew.

        Silence is no loop, and in a unit without words nothing is wrong with it.
        """
        for code in codes:
            silent = code == self._silence_code
            if not silent:
                self._silent = 0
            elif words:
                self._silent += 1
            for i, before in enumerate(reversed(self._past)):
                self._loops[i] = self._loops[i] + 1 if before == code and not silent else 0
            self._past.append(code)
            if self._silent >= self._most or max(self._loops) >= self._most:
                how = "silence" if silent else "loop"
                self._past.clear()
                self._loops = [0] * len(self._loops)
                self._silent = 0
                return how
        return None
