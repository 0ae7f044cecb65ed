"""What the recogniser makes of callers' words: ``python -m training.thinker.confusions OUT.json``.

Sentences of the phrasings, spoken by flite, are heard by the recogniser; counted is what came of each word.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from training.thinker import language, open_places
from training.thinker.alignment import align
from training.thinker.listening import Caller, fitted
from training.thinker.sampling import Callers
from training.thinker.speech import speakable

VOICES = ("kal16", "slt", "awb")
"""rms is heard by nothing that is learnt from."""
SENTENCES = 810
SEED = 31


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


def sentences(seed: int) -> Iterator[tuple[str, ...]]:
    """What callers say, in the phrasings to learn from."""
    texts, rules = language.phrasings()
    callers, random = Callers(open_places.fill, texts, rules), Random(seed)
    while True:
        words = callers.sample(random).words
        if speakable(words):
            yield words


def main() -> None:
    """Speak, hear and count as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.confusions", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--voices", nargs="+", default=VOICES)
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="of all voices together")
    parser.add_argument("--model", type=Path, help="folder of the language model, if not the shipped one")
    arguments = parser.parse_args()
    recogniser = fitted(arguments.model)
    pool = recogniser.pool()
    callers = [Caller(voice, pool, recogniser.reader) for voice in arguments.voices]
    said = list(islice(sentences(SEED), arguments.sentences))
    heard = [callers[i % len(callers)].say(" ".join(words), i) for i, words in enumerate(said)]
    counts = counted(zip(said, heard, strict=True))
    arguments.file.write_text(json.dumps(counts, indent=None) + "\n", encoding="utf-8")
    print(f"{counts['exact']:.1%} of {counts['sentences']} sentences exact")


if __name__ == "__main__":
    main()
