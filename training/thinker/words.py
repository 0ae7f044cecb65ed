"""Words of the dictionary: frequent ones mostly, for open places and for speech that means nothing."""

from __future__ import annotations

import re
from itertools import accumulate
from random import Random

import pocketsphinx

from duologue.engine.models.embedded.lexicon import pronunciations

_PLAIN = re.compile(r"[a-z]{2,14}('[a-z]{1,2})?|a|i")
_MOST = 20_000
"""Words that are kept, the most frequent ones."""
_LIKE = 400
"""Words among which one that is like another is looked for."""


class Words:
    """The dictionary's most frequent words, each as likely as the square root of its frequency."""

    def __init__(self) -> None:
        model = pocketsphinx.NGramModel(pocketsphinx.Config(loglevel="FATAL"), pocketsphinx.LogMath(),
                                        pocketsphinx.get_model_path("en-us/en-us.lm.bin"))
        base = pocketsphinx.LogMath()
        spoken = pronunciations()
        scored = sorted(((model.prob([word]), word) for word in spoken if _PLAIN.fullmatch(word)), reverse=True)[:_MOST]
        self.all = tuple(word for _, word in scored)
        self._sums = list(accumulate(base.exp(score) ** 0.5 for score, _ in scored))
        self._sounds = {word: frozenset(spoken[word][0].split()) for word in self.all}

    def some(self, count: int, random: Random) -> list[str]:
        """``count`` words, frequent ones more often."""
        return random.choices(self.all, cum_weights=self._sums, k=count)

    def any(self, random: Random) -> str:
        """One word, a rare one as likely as another."""
        return random.choice(self.all)

    def like(self, word: str, random: Random) -> str:
        """A word that sounds somewhat like ``word``; of several drawn the one that shares most of its sounds."""
        sounds = self._sounds.get(word, frozenset())
        drawn = (other for other in self.some(_LIKE, random) if other != word)
        return max(drawn, key=lambda other: len(sounds & self._sounds[other]) / len(sounds | self._sounds[other]))
