"""G.711 (ITU-T): one byte a sample at 8 kHz, by mu-law (PCMU) or A-law (PCMA)."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from duologue.engine import Pcm

Law = Literal["mu", "a"]

RATE = 8000
"""Sample rate, in Hz."""


@lru_cache(maxsize=2)
def _values(law: Law) -> Pcm:
    """What each byte stands for, as 16-bit samples: G.711 tables 1a/1b (A-law) and 2a/2b (mu-law)."""
    code = np.arange(256)
    if law == "a":
        code ^= 0x55  # even bits are inverted on the line
        segment, step = code >> 4 & 7, code & 15
        size = np.where(segment == 0, (step << 4) + 8, ((step << 4) + 0x108) << np.maximum(segment - 1, 0))
        return np.where(code & 0x80, size, -size).astype(np.int16)
    code ^= 0xFF
    size = (((code & 15) << 3) + 0x84 << (code >> 4 & 7)) - 0x84
    return np.where(code & 0x80, -size, size).astype(np.int16)


@lru_cache(maxsize=2)
def _codes(law: Law) -> NDArray[np.uint8]:
    """The byte nearest to each 16-bit sample, by the sample taken as unsigned."""
    values = _values(law).astype(np.int32)
    # Of mu-law's two zeros the positive one, all ones on the line.
    order = [int(code) for code in np.argsort(values, kind="stable") if (law, code) != ("mu", 0x7F)]
    middles = (values[order][1:] + values[order][:-1]) / 2
    samples = np.arange(65_536, dtype=np.uint16).view(np.int16)
    return np.array(order, np.uint8)[np.searchsorted(middles, samples)]


class G711:
    """Codes and decodes; it has no state."""

    rate = RATE

    def __init__(self, law: Law) -> None:
        self._values = _values(law)
        self._codes = _codes(law)

    def decode(self, payload: bytes) -> Pcm:
        """One sample a byte."""
        return self._values[np.frombuffer(payload, np.uint8)]

    def encode(self, pcm: Pcm) -> bytes:
        """One byte a sample."""
        return self._codes[pcm.view(np.uint16)].tobytes()

    def reset(self) -> None:
        """Nothing carries over from one payload to the next."""
