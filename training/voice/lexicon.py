"""What flite's lexicon says for the words of the CMU dictionary: ``python -m training.voice.lexicon OUT``.

It writes ``OUT/lexicon.xz``, which ``duologue.engine.models.embedded.voice.lexicon`` reads. flite's letter-to-sound
rules answer for the words its lexicon lacks, so every word is said as the corpus says it.
"""

from __future__ import annotations

import argparse
import ctypes
import lzma
import re
from ctypes import c_char_p, c_void_p
from importlib.resources import files
from pathlib import Path
from string import ascii_lowercase
from typing import Any

from duologue.engine.models.embedded.voice.symbols import ID, VOWELS
from training.voice.corpus import Speaker

FILE = "lexicon.xz"
_FIRST = ord("0")
"""The character of symbol 0."""
_GIVEN = {"A": ("ey0",), "does": ("d", "ah1", "z"), "mhm": ("m", "hh", "m"), "shh": ("sh",)}
"""The letter as flite says it alone, a verb it takes for deer here, and sounds it would spell."""
_LONGEST = 24


class Dictionary(Speaker):
    """flite's lexicon."""

    def __init__(self) -> None:
        """Load the libraries; raises ``ConfigError`` if they are missing."""
        super().__init__()
        begin: Any = ctypes.CDLL("libflite_cmulex.so.1").cmu_lex_init
        begin.restype = c_void_p
        self._lexicon = begin()
        for name, result, arguments in (("lex_lookup", c_void_p, (c_void_p, c_char_p, c_char_p, c_void_p)),
                                        ("val_car", c_void_p, (c_void_p,)), ("val_cdr", c_void_p, (c_void_p,)),
                                        ("val_string", c_char_p, (c_void_p,)), ("delete_val", None, (c_void_p,))):
            function = getattr(self._flite, name)
            function.restype, function.argtypes = result, arguments

    def look_up(self, word: str) -> tuple[str, ...]:
        """The phones of a word in lower case, vowels with their stress."""
        flite: Any = self._flite
        found = flite.lex_lookup(self._lexicon, word.encode("ascii"), None, None)
        phones, cell = list[str](), found
        while cell:
            phone = flite.val_string(flite.val_car(cell)).decode()
            phones.append(f"{phone}0" if phone in VOWELS else phone)
            cell = flite.val_cdr(cell)
        flite.delete_val(found)
        return tuple(phones)


def pronunciations() -> dict[str, tuple[str, ...]]:
    """Words in lower case without apostrophes, and names of letters in capitals, with their phones."""
    dictionary = Dictionary()
    text = (files("pocketsphinx") / "model/en-us/cmudict-en-us.dict").read_text(encoding="utf-8")
    known = {line.split()[0] for line in text.splitlines() if re.match(r"[a-z][a-z']* ", line)}
    words = {word.replace("'", "") for word in known if not word.endswith("'s")} | {"hm", "hmm", "mm"}
    said = {word: phones for word in words if len(word) <= _LONGEST and (phones := dictionary.look_up(word))}
    return said | {letter.upper(): dictionary.look_up(letter) for letter in ascii_lowercase} | _GIVEN


def write(folder: Path) -> int:
    """Write ``folder/lexicon.xz``; says how many words it has."""
    said = sorted(pronunciations().items())
    text = "".join(f"{word} {''.join(chr(_FIRST + ID[phone]) for phone in phones)}\n" for word, phones in said)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(lzma.compress(text.encode("ascii"), preset=9))
    return len(said)


def main() -> None:
    """Write the lexicon as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.lexicon", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    print(f"{write(folder)} words, {(folder / FILE).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
