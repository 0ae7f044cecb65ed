"""What the recogniser makes of callers' words: ``python -m training.thinker.confusions OUT.json [--voices ...]``.

Sentences of the phrasings, spoken by flite, are heard by the recogniser; counted is what came of each word.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from training.thinker.alignment import align


def counted(sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> dict[str, Any]:
    """Statistics of (said, heard) sentences.

    ``sentences`` is how many there are, ``exact`` the share that came out as it was said; ``words`` how often each word
    was said, ``deleted`` how often it was left out, ``substituted`` what else it was heard as (one word or several, and
    how often), ``inserted`` the words that were heard where nothing was said.
    """
    words, deleted, inserted = Counter[str](), Counter[str](), Counter[str]()
    substituted: defaultdict[str, Counter[str]] = defaultdict(Counter)
    number = exact = 0
    for said, heard in sentences:
        number += 1
        exact += tuple(said) == tuple(heard)
        words.update(said)
        for pair in align(said, heard):
            if pair.said is None:
                inserted.update(pair.heard)
            elif not pair.heard:
                deleted[pair.said] += 1
            elif pair.heard != (pair.said,):
                substituted[pair.said][" ".join(pair.heard)] += 1
    return {"sentences": number, "exact": round(exact / max(number, 1), 4), "words": _sorted(words),
            "substituted": {word: counts.most_common() for word, counts in sorted(substituted.items())},
            "deleted": _sorted(deleted), "inserted": _sorted(inserted)}


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
