"""Make what the thinker is trained on: ``python -m training.thinker.pool OUT`` writes OUT/tokenizer.json, OUT/*.npz.

A shard holds rows of dialogues, short ones and long ones apart. The training takes new shards in as they come, so this
may run beside it; shards that are there are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.thinking.format import Format
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.thinker import meanings, phrasings, rows, vocabulary
from training.thinker.dialogues import Dialogues
from training.thinker.errors import STATISTICS, Confusions
from training.thinker.moments import Moment
from training.thinker.phrasebook import Phrasebook
from training.thinker.words import Words

SHARDS = 12
"""About 20 million tokens."""
DIALOGUES = 8_000
"""Of one shard."""
SHORT, LONG = 192, 448
"""Lengths of rows, in tokens: most dialogues are short, and attention costs by the square."""
NAMES = ("tokens", "positions", "parts", "sees", "learnt", "meant")
"""Of a shard's arrays, one of each for both lengths: those of ``rows.arrays``, and what sentences mean that end with a
token, as numbers of rows in ``MEANINGS``, 0 for none."""
MEANINGS = "meanings"
_MEANT = 2
"""One of so many sentences has its meaning told: the teacher takes longer than all else."""
_STRANGE = 0.4
"""Share of the sentences out of domain that have strange words."""
_READ = 6000
"""Dialogues from whose words the vocabulary is made, and words of the dictionary that count with them."""


def make(folder: Path, shards: int) -> None:
    """Write the vocabulary, if there is none, and ``shards`` shards."""
    words = Words()
    made = phrasings.load()
    dialogues = Dialogues(Phrasebook(made, words, "train"), Confusions.read(STATISTICS, words), strange=_STRANGE)
    file = folder / vocabulary.FILE
    folder.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        vocabulary.write(file, texts(islice(dialogues.endless(-1), _READ), words), made)
    format_ = Format(Vocabulary.read(file))
    teacher = meanings.teacher(folder / "teacher")
    for number in range(shards):
        shard = folder / f"shard-{number:03d}.npz"
        if not shard.exists():
            write(shard, islice(dialogues.endless(number), DIALOGUES), format_, teacher)
            print(f"{shard.name} written", flush=True)


def write(file: Path, made: Iterator[list[Moment]], format_: Format, teacher: meanings.Teacher) -> None:
    """Write one shard of these dialogues; the file is whole at any moment."""
    found = [rows.parts(dialogue, format_, LONG) for dialogue in made]
    sizes = [sum(len(part.tokens) for part in dialogue) for dialogue in found]
    # The teacher is faster with sentences of one length at a time.
    said = sorted({text for dialogue in found for part in dialogue for text in part.said if text},
                  key=lambda text: (text.count(" "), text))[::_MEANT]
    numbers = {text: number for number, text in enumerate(said, 1)}
    arrays: dict[str, NDArray[Any]] = {MEANINGS: np.pad(meanings.scaled(teacher(said)), ((1, 0), (0, 0)))}
    for length, least in ((SHORT, 0), (LONG, SHORT)):
        chosen = (dialogue for dialogue, size in zip(found, sizes, strict=True)
                  if least < size <= (SHORT if length == SHORT else LONG))
        packed = list(rows.packed(chosen, length))
        arrays |= {f"{length}.{name}": values for name, values in rows.arrays(packed, length, numbers).items()}
    part = file.with_suffix(".part")
    with part.open("wb") as to:
        np.savez(to, allow_pickle=False, **arrays)
    part.replace(file)


def texts(made: Iterable[list[Moment]], words: Words) -> Iterator[str]:
    """What is said in these dialogues, by callers and to them, and the dictionary's most frequent words."""
    for dialogue in made:
        for moment in dialogue:
            if moment.learnt and moment.wanted.speaks:
                yield " ".join(moment.heard.words) if moment.heard is not None else ""
                yield moment.told
    yield from words.all[:_READ]


def main() -> None:
    """Make it as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.pool", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=SHARDS)
    arguments = parser.parse_args()
    make(arguments.folder, arguments.shards)


if __name__ == "__main__":
    main()
