"""Reads words that the lexicon lacks, by their letters (``training/voice/letters.py`` says how it learnt it)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from duologue.engine.models.embedded.voice.layers import Block, Floats, Linear, Norm
from duologue.engine.models.embedded.voice.symbols import PHONES

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SLOTS = 2
"""Phones that one letter may stand for ("x": k s)."""
BLANK = 0
"""The class of no phone; the phones come behind it."""


class Reader:
    """The network."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """``weights`` has the names of ``training.voice.letters.Reader``; raises ``KeyError`` for one that lacks."""
        self._letters = weights["letters.weight"]
        count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
        self._blocks = [Block(weights, f"blocks.{i}") for i in range(count)]
        self._norm, self._head = Norm(weights, "norm"), Linear(weights, "head")

    def read(self, word: str) -> tuple[str, ...]:
        """The phones of a word of ``LETTERS``."""
        x: Floats = self._letters[[LETTERS.index(letter) * SLOTS + slot for letter in word for slot in range(SLOTS)]]
        for block in self._blocks:
            around = block.kernel // 2
            x = x + block(np.pad(x, ((around, around), (0, 0))))
        return collapsed(self._head(self._norm(x)).argmax(-1).tolist())


def collapsed(classes: list[int]) -> tuple[str, ...]:
    """Phones of classes slot by slot: repeated ones are one, blanks none (CTC, Graves et al. 2006)."""
    return tuple(PHONES[now - 1] for now, before in zip(classes, [BLANK, *classes], strict=False)
                 if now not in (BLANK, before))
