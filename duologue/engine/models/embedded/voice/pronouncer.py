"""The phones of a word: the lexicon's, else what its letters suggest."""

from __future__ import annotations

from pathlib import Path

from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.letters import Reader
from duologue.engine.models.embedded.voice.lexicon import Lexicon

LEXICON = "lexicon.xz"
_CLITICS = {"'s": "z", "'ll": "l", "'ve": "v", "'d": "d"}
_HISSES = frozenset(["s", "z", "sh", "zh", "ch", "jh"])
_VOICELESS = frozenset(["p", "t", "k", "f", "th"])


class Pronouncer:
    """Words to phones; one serves all sessions."""

    def __init__(self, folder: Path) -> None:
        """Load lexicon and reader from ``folder``; raises ``ConfigError`` if they are not there."""
        self._reader = Reader(weights.load(folder, "letters"))
        self._lexicon = Lexicon(weights.present(folder / LEXICON))

    def phones(self, word: str) -> tuple[str, ...]:
        """Phones of a word in lower case, or of a letter's name in capitals; others than ASCII letters are passed over.

        What cannot be read is spelled.
        """
        letters = "".join(filter(str.isalpha, word))
        return (self._lexicon.look_up(letters) or self._reader.read(letters.lower())
                or tuple(phone for letter in letters.upper() for phone in self._lexicon.look_up(letter) or ()))

    def clitic(self, word: str, before: tuple[str, ...]) -> tuple[str, ...]:
        """Phones of "'s", "'ll", "'ve" or "'d" behind the phones ``before`` (flite's ``postlex``)."""
        last, sound = before[-1] if before else "", _CLITICS[word]
        if word == "'s":
            return ("ax0", sound) if last in _HISSES else ("s",) if last in _VOICELESS else (sound,)
        return (sound,) if last[-1:].isdigit() else ("ax0", sound)


def is_clitic(word: str) -> bool:
    """Whether ``word`` has phones only behind another."""
    return word in _CLITICS
