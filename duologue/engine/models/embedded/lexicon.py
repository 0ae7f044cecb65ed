"""Pronunciations for the recognisers: cut down from CMUdict to what the language model and the grammar need.

A decoder with all 135 000 words takes 0.5 s and 92 MB; the most frequent 10 000 and the grammar's own words are
as good here, three times faster to load and twice to search.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import pocketsphinx

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.weights import FOLDER

FREE_PREFIX = "ph-"
"""Words that start so stand for one phone of free speech in the grammar."""

PHONES = ("AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY", "F", "G", "HH", "IH", "IY",
          "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P", "R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y",
          "Z", "ZH")
"""The phones of pocketsphinx's en-us acoustic model (ARPAbet)."""

LANGUAGE_MODEL, DICTIONARY = "hearing.lm.bin", "hearing.dict"
_SOUNDS = {"mm-hm": ("M HH M", "AH M HH AH M", "M HH AH M")}
"""Sounds CMUdict does not have."""

_REDUCED = {"AX": "AH"}
"""The vowel of flite's that pocketsphinx writes as another."""
_LETTERS = re.compile("[a-z']*[a-z][a-z']*")

FREE_WORDS = tuple(FREE_PREFIX + phone.lower() for phone in PHONES)


def pronunciations() -> dict[str, list[str]]:
    """Every known word in lower case with its pronunciations, phones set apart by blanks."""
    spoken = read_dictionary(Path(pocketsphinx.get_model_path("en-us")) / "cmudict-en-us.dict")
    for word, sounds in _SOUNDS.items():
        spoken.setdefault(word, []).extend(sounds)
    return spoken


def read_dictionary(path: Path) -> dict[str, list[str]]:
    """The pronunciations in a dictionary file of pocketsphinx's."""
    spoken: dict[str, list[str]] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            word, _, phones = line.strip().partition(" ")
            spoken.setdefault(word.split("(")[0], []).append(phones)
    return spoken


def write_dictionary(path: Path, entries: Mapping[str, Sequence[str]]) -> None:
    """Write each word's pronunciations as a dictionary file of pocketsphinx's."""
    with path.open("w", encoding="utf-8") as file:
        for word, ways in entries.items():
            for i, phones in enumerate(ways):
                file.write(f"{word}{f'({i + 1})' if i else ''} {phones}\n")


class Sounds:
    """The phones of words: known ones as a recogniser hears them, others, names say, as the agent speaks them."""

    def __init__(self, spoken: Mapping[str, Sequence[str]]) -> None:
        """``spoken`` has each known word's pronunciations, of which the first counts."""
        self._phones = {word: tuple(ways[0].split()) for word, ways in spoken.items()}

    def phones(self, words: Sequence[str]) -> tuple[str, ...]:
        """The phones of ``words`` one after another; what has no letters alone, as free speech has not, has none."""
        return tuple(phone for word in words for phone in self._phones.get(word) or _as_spoken(word))

    def phones_of_text(self, text: str) -> tuple[str, ...]:
        """The same for written text."""
        return self.phones(re.findall(r"[a-z']+", text.lower()))


class Lexicon(Sounds):
    """The two dictionaries of a recogniser with a grammar, as files."""

    def __init__(self, grammar_words: Iterable[str], frequent: int) -> None:
        """``frequent`` is how many of the language model's words are kept."""
        spoken = pronunciations()
        self.language_model = pocketsphinx.get_model_path("en-us/en-us.lm.bin")
        needed = sorted(grammar_words)
        free = _frequent(self.language_model, spoken, frequent) | set(needed)
        super().__init__({word: spoken[word] for word in free})
        self._folder = tempfile.TemporaryDirectory(prefix="duologue-")
        self.free_dictionary = self._write("free.dict", {word: spoken[word] for word in sorted(free)})
        loop = {word: [phone] for word, phone in zip(FREE_WORDS, PHONES, strict=True)}
        self.grammar_dictionary = self._write("grammar.dict", {word: spoken[word] for word in needed} | loop)

    def _write(self, name: str, entries: Mapping[str, Sequence[str]]) -> str:
        path = Path(self._folder.name) / name
        write_dictionary(path, entries)
        return str(path)


class FittedLexicon(Sounds):
    """The fitted language model and the dictionary of its words, two files beside this package."""

    def __init__(self, folder: Path = FOLDER) -> None:
        """``folder`` holds ``hearing.lm.bin`` and ``hearing.dict``; raises ``ConfigError`` if they are missing."""
        for file in (LANGUAGE_MODEL, DICTIONARY):
            if not (folder / file).is_file():
                raise ConfigError(f"the recogniser needs {folder / file}: install the package whole, or run "
                                  "python -m training.thinker.language")
        self.language_model = str(folder / LANGUAGE_MODEL)
        self.dictionary = str(folder / DICTIONARY)
        super().__init__(read_dictionary(folder / DICTIONARY))


@cache
def _pronouncer() -> Pronouncer:
    return Pronouncer(FOLDER)


@lru_cache(1000)
def _as_spoken(word: str) -> tuple[str, ...]:
    """The phones that the trained voice says for ``word``, in lower case."""
    if not _LETTERS.fullmatch(word):
        return ()
    plain = (phone.rstrip("01").upper() for phone in _pronouncer().phones(word))
    return tuple(_REDUCED.get(phone, phone) for phone in plain)


def _frequent(path: str, words: Iterable[str], count: int) -> set[str]:
    """The ``count`` words with the highest unigram probability; those the model lacks have the lowest."""
    config = pocketsphinx.Config(loglevel="FATAL")
    model = pocketsphinx.NGramModel(config, pocketsphinx.LogMath(), path)
    return set(sorted(words, key=lambda word: (-model.prob([word]), word))[:count])
