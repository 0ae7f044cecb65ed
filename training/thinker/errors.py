"""What a recogniser makes of a sentence: words of it replaced, left out, put in.

Each word that comes out knows which word it came of, so that what is left of a sentence's slots can be told.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random
from typing import Any

from training.thinker.words import Words

STATISTICS = Path(__file__).with_name("confusions.json")
"""Counted in voices that the thinker is not measured with."""
_UNSEEN = 2.0
"""Times that any word counts as heard right: what was seen thrice and confused once is confused less often."""
_RARE = 0.12
"""Share of words that are heard wrong, of those the statistics do not have."""
_ANY = 0.15
"""Share of replacements that are any word, for what other voices and rooms make of it."""


@dataclass(frozen=True, slots=True)
class Came:
    """One word as it was heard; ``source`` is the place of the word it came of, None where nothing had been said."""

    word: str
    source: int | None
    right: bool


class _Weighted:
    """Words by how often they came."""

    def __init__(self, counts: Sequence[tuple[str, int]]) -> None:
        self._words = [word for word, _ in counts]
        self._sums = list(accumulate(count for _, count in counts))

    def __bool__(self) -> bool:
        return bool(self._words)

    @property
    def total(self) -> int:
        return self._sums[-1] if self._sums else 0

    def draw(self, random: Random) -> str:
        return random.choices(self._words, cum_weights=self._sums)[0]


class Confusions:
    """Statistics of a recogniser's errors; ``words`` gives the words nobody expected."""

    def __init__(self, counted: Mapping[str, Any], words: Words) -> None:
        """``counted``: ``words``, how often each was said; of these ``deleted``, and ``substituted`` by what; and
        ``inserted``."""
        self._seen: Mapping[str, int] = counted["words"]
        self._deleted: Mapping[str, int] = counted["deleted"]
        self._replaced = {word: _Weighted([(by, count) for by, count in by_count])
                          for word, by_count in counted["substituted"].items()}
        self._inserted = _Weighted(list(counted["inserted"].items()))
        self._insertion = self._inserted.total / sum(self._seen.values())
        self._words = words

    @classmethod
    def read(cls, file: Path, words: Words) -> Confusions:
        """The statistics in ``file``, JSON."""
        return cls(json.loads(file.read_text(encoding="utf-8")), words)

    def hear(self, words: Sequence[str], random: Random, level: float) -> list[Came]:
        """``words`` with errors, ``level`` times as frequent as they were counted."""
        heard: list[Came] = []
        for place, word in enumerate(words):
            if random.random() < level * self._insertion:
                heard.append(Came(self._inserted.draw(random), None, False))
            seen = self._seen.get(word, 0) + _UNSEEN
            luck = random.random() / level
            deleted = self._deleted.get(word, 0) / seen
            replaced = self._replaced[word].total / seen if word in self._replaced else _RARE / seen
            if luck < deleted:
                continue
            if luck < deleted + replaced:
                heard.extend(Came(other, place, False) for other in self._instead(word, random))
            else:
                heard.append(Came(word, place, True))
        return heard

    def _instead(self, word: str, random: Random) -> list[str]:
        if word in self._replaced and random.random() > _ANY:
            return self._replaced[word].draw(random).split()
        return [self._words.like(word, random)]
