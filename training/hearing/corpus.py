"""Make what the encoder is trained on: ``python -m training.hearing.corpus OUT`` writes OUT/speech-*.npz.

Sentences of the thinker's phrasings, and words at random so that every piece of a word occurs, in three of flite's
voices. The training takes new shards in as they come; those that are there are kept.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np

from training.hearing.flite import FliteError, Speaker, Speech
from training.thinker import phrasings
from training.thinker.phrasebook import Phrasebook
from training.thinker.speech import speakable
from training.thinker.words import Words

VOICES = ("kal16", "slt", "awb")
"""``rms`` is held out."""
SHARDS = 10
"""About five hours."""
SENTENCES = 1000
"""Of a shard."""
_STRETCH = (0.75, 1.3)
_PITCH = (0.8, 1.3)
_KINDS = {"call": 0.45, "reply": 0.2, "begun": 0.06, "elsewhere": 0.06, "murmur": 0.03, "frequent": 0.12, "rare": 0.08}
"""Shares of the kinds of sentences."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence and how it is said."""

    words: tuple[str, ...]
    speech: Speech


def sentences(book: Phrasebook, seed: int) -> Iterator[tuple[str, ...]]:
    """What is said, without end."""
    made, words, random = book.phrasings, book.words, Random(f"hearing/{seed}")
    elsewhere = made.out_of_domain["train"]
    murmurs = [*made.backchannels, *made.hesitations, *made.noises]
    while True:
        match random.choices(list(_KINDS), list(_KINDS.values()))[0]:
            case "call":
                said = book.sentence(random.choice(book.calls), random).words
            case "reply":
                said = book.sentence(random.choice(book.replies), random).words
            case "begun":
                said = book.draw(random.choice(random.choice(made.unfinished).begun), random)
            case "elsewhere":
                said = book.draw(random.choice(elsewhere), random)
            case "murmur":
                said = book.draw(random.choice(murmurs), random)
            case "frequent":
                said = tuple(words.some(random.randint(2, 7), random))
            case _:
                said = tuple(words.any(random) for _ in range(random.randint(1, 5)))
        if said and speakable(said):
            yield said


def spoken(book: Phrasebook, seed: int) -> Iterator[Sentence]:
    """The sentences, each in a voice, at a speed and a pitch drawn at random."""
    speakers, random = [Speaker(voice) for voice in VOICES], Random(f"voices/{seed}")
    for words in sentences(book, seed):
        speaker = random.choice(speakers)
        stretch, pitch = (low * (high / low) ** random.random() for low, high in (_STRETCH, _PITCH))
        try:
            yield Sentence(words, speaker.say(words, stretch, pitch))
        except FliteError:
            continue


def write(file: Path, said: Sequence[Sentence]) -> None:
    """Write one shard; the file is whole at any moment."""
    part = file.with_suffix(".part")
    with part.open("wb") as to:
        np.savez(to, allow_pickle=False,
                 pcm=np.concatenate([one.speech.pcm for one in said]),
                 samples=np.array([len(one.speech.pcm) for one in said]),
                 words=np.array([" ".join(one.words) for one in said]),
                 ends=np.array([end for one in said for end in one.speech.words]),
                 phones=np.array([name for one in said for name, _ in one.speech.phones]),
                 phone_ends=np.array([end for one in said for _, end in one.speech.phones]),
                 phone_counts=np.array([len(one.speech.phones) for one in said]))
    part.replace(file)


def read(file: Path) -> list[Sentence]:
    """Read what ``write`` wrote."""
    with np.load(file) as held:
        data = {name: held[name] for name in held.files}
    words = [tuple(text.split()) for text in data["words"].tolist()]
    pcm = np.split(data["pcm"], np.cumsum(data["samples"])[:-1])
    ends = np.split(data["ends"], np.cumsum([len(each) for each in words])[:-1])
    cuts = np.cumsum(data["phone_counts"])[:-1]
    phones, phone_ends = np.split(data["phones"], cuts), np.split(data["phone_ends"], cuts)
    return [Sentence(said, Speech(sound, tuple(end.tolist()), tuple(zip(names.tolist(), at.tolist(), strict=True))))
            for said, sound, end, names, at in zip(words, pcm, ends, phones, phone_ends, strict=True)]


def make(folder: Path, shards: int) -> None:
    """Write ``shards`` shards."""
    folder.mkdir(parents=True, exist_ok=True)
    book = Phrasebook(phrasings.load(), Words(), "train")
    for number in range(shards):
        file = folder / f"speech-{number:03d}.npz"
        if not file.exists():
            write(file, list(islice(spoken(book, number), SENTENCES)))
            print(f"{file.name} written", flush=True)


def main() -> None:
    """Make it as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.hearing.corpus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shards", type=int, default=SHARDS)
    arguments = parser.parse_args()
    make(arguments.folder, arguments.shards)


if __name__ == "__main__":
    main()
