"""The dumped lexicon: some 120 000 words and their phones, in 2 MB of memory."""

from __future__ import annotations

import lzma
from bisect import bisect_left
from pathlib import Path

from duologue.engine.models.embedded.voice.symbols import SYMBOLS

_FIRST = ord("0")
"""The character of symbol 0."""


class Lexicon:
    """Words in lower case, names of letters in capitals."""

    def __init__(self, file: Path) -> None:
        """Read ``file``: lines of a word and its phones, one character each, in the order of the words; xz."""
        entries = lzma.decompress(file.read_bytes()).split()
        self._words, self._sounds = entries[::2], entries[1::2]

    def __len__(self) -> int:
        return len(self._words)

    def look_up(self, word: str) -> tuple[str, ...] | None:
        """The phones of ``word``, or None where it is not known."""
        wanted = word.encode("ascii")
        place = bisect_left(self._words, wanted)
        if place == len(self._words) or self._words[place] != wanted:
            return None
        return tuple(SYMBOLS[char - _FIRST] for char in self._sounds[place])
