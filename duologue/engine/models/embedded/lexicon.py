"""Pronunciations for the recogniser: cut down from CMUdict to what the language model and the grammar need.

A decoder with all 135 000 words takes 0.5 s and 92 MB; the most frequent 10 000 and the grammar's own words are
as good here, three times faster to load and twice to search.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pocketsphinx

FREE_PREFIX = "ph-"
"""Words that start so stand for one phone of free speech in the grammar."""

PHONES = ("AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY",
          "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y",
          "Z", "ZH")
"""The phones of pocketsphinx's en-us acoustic model (ARPAbet)."""

_SOUNDS = {"mm-hm": ("M HH M", "AH M HH AH M", "M HH AH M")}
"""Sounds CMUdict does not have."""

FREE_WORDS = tuple(FREE_PREFIX + phone.lower() for phone in PHONES)


def pronunciations() -> dict[str, list[str]]:
    """Every known word in lower case with its pronunciations, phones set apart by blanks."""
    spoken: dict[str, list[str]] = {}
    with (Path(pocketsphinx.get_model_path("en-us")) / "cmudict-en-us.dict").open(encoding="utf-8") as lines:
        for line in lines:
            word, _, phones = line.strip().partition(" ")
            spoken.setdefault(word.split("(")[0], []).append(phones)
    for word, sounds in _SOUNDS.items():
        spoken.setdefault(word, []).extend(sounds)
    return spoken


class Lexicon:
    """The two dictionaries of a recogniser, as files, and the phones of their words."""

    def __init__(self, grammar_words: Iterable[str], frequent: int) -> None:
        """``frequent`` is how many of the language model's words are kept."""
        spoken = pronunciations()
        self.language_model = pocketsphinx.get_model_path("en-us/en-us.lm.bin")
        needed = sorted(grammar_words)
        free = _frequent(self.language_model, spoken, frequent) | set(needed)
        self._phones = {word: tuple(spoken[word][0].split()) for word in free}
        self._folder = tempfile.TemporaryDirectory(prefix="duologue-")
        self.free_dictionary = self._write("free.dict", {word: spoken[word] for word in sorted(free)})
        loop = {word: [phone] for word, phone in zip(FREE_WORDS, PHONES, strict=True)}
        self.grammar_dictionary = self._write("grammar.dict", {word: spoken[word] for word in needed} | loop)

    def _write(self, name: str, entries: dict[str, list[str]]) -> str:
        path = Path(self._folder.name) / name
        with path.open("w", encoding="utf-8") as file:
            for word, pronunciations in entries.items():
                for i, phones in enumerate(pronunciations):
                    file.write(f"{word}{f'({i + 1})' if i else ''} {phones}\n")
        return str(path)

    def phones(self, words: Sequence[str]) -> tuple[str, ...]:
        """The phones of ``words`` one after another; words that are not known have none."""
        return tuple(phone for word in words for phone in self._phones.get(word, ()))

    def phones_of_text(self, text: str) -> tuple[str, ...]:
        """The same for written text."""
        return self.phones(re.findall(r"[a-z']+", text.lower()))


def _frequent(path: str, words: Iterable[str], count: int) -> set[str]:
    """The ``count`` words with the highest unigram probability; those the model lacks have the lowest."""
    config = pocketsphinx.Config(loglevel="FATAL")
    model = pocketsphinx.NGramModel(config, pocketsphinx.LogMath(), path)
    return set(sorted(words, key=lambda word: (-model.prob([word]), word))[:count])
