"""Which word was heard as what: two rows of words, aligned by how much they sound alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from duologue.engine.models.embedded.agreement import distance
from duologue.engine.models.embedded.lexicon import pronunciations

_MISSING = 0.7
"""What a word left out or put in costs; taking one for another costs as much as their sounds differ, up to 1."""
_PRONUNCIATIONS = pronunciations()


@dataclass(frozen=True, slots=True)
class Pair:
    """``said``, one word or none, was heard as ``heard``, which is several words where it was taken for several."""

    said: str | None
    heard: tuple[str, ...]


def align(said: Sequence[str], heard: Sequence[str]) -> list[Pair]:
    """The pairs of one sentence, in order. Words put in belong to the misheard word beside them, if there is one."""
    costs = [[_MISSING * j for j in range(len(heard) + 1)]]
    for i, word in enumerate(said, 1):
        row, above = [_MISSING * i], costs[-1]
        for j, other in enumerate(heard, 1):
            row.append(min(above[j - 1] + unlike(word, other), above[j] + _MISSING, row[j - 1] + _MISSING))
        costs.append(row)
    pairs: list[Pair] = []
    i, j = len(said), len(heard)
    while i or j:
        if i and j and costs[i][j] == costs[i - 1][j - 1] + unlike(said[i - 1], heard[j - 1]):
            i, j = i - 1, j - 1
            pairs.append(Pair(said[i], (heard[j],)))
        elif i and (not j or costs[i][j] == costs[i - 1][j] + _MISSING):
            i -= 1
            pairs.append(Pair(said[i], ()))
        else:
            j -= 1
            pairs.append(Pair(None, (heard[j],)))
    return _joined(pairs[::-1])


def _joined(pairs: Sequence[Pair]) -> list[Pair]:
    joined: list[Pair] = []
    for pair in pairs:
        last = joined[-1] if joined else None
        if last is not None and pair.said is None and last.said is not None and last.heard not in ((), (last.said,)):
            joined[-1] = Pair(last.said, last.heard + pair.heard)
        elif last is not None and last.said is None and pair.said is not None and pair.heard not in ((), (pair.said,)):
            joined[-1] = Pair(pair.said, last.heard + pair.heard)
        else:
            joined.append(pair)
    return joined


@lru_cache(maxsize=1 << 16)
def unlike(word: str, other: str) -> float:
    """How different two words sound: 0 for the same, 1 for nothing in common, 0.2 for words that only look apart."""
    if word == other:
        return 0.0
    a, b = (_PRONUNCIATIONS.get(each, [" ".join(each.upper())])[0].split() for each in (word, other))
    return 0.2 + 0.8 * distance(a, b) / max(len(a), len(b))
