"""Measure the encoder: ``python -m training.hearing.evaluate [--weights FILE]`` prints words heard wrong by voice.

Sentences of the thinker's phrasings, held out and seen, as microphones bring them: 16 kHz, a little noise, silence
around. ``rms`` is a voice of which nothing was learnt.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.hearing.listener import Listener
from duologue.engine.models.embedded.hearing.opening import FILE, Listeners
from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training.hearing import corpus
from training.hearing.flite import Speaker
from training.thinker import phrasings
from training.thinker.phrasebook import Part, Phrasebook
from training.thinker.recognition import Errors
from training.thinker.speech import speakable, units
from training.thinker.words import Words

SENTENCES = 80
VOICES = (*corpus.VOICES, "rms")
_SEED = 23


def sentences(part: Part, count: int) -> list[tuple[str, ...]]:
    """``count`` sentences to skills and of small talk."""
    book, random = Phrasebook(phrasings.load(), Words(), part), Random(_SEED)
    found = dict[tuple[str, ...], None]()
    while len(found) < count:
        words = book.sentence(random.choice((*book.calls, *book.replies)), random).words
        if speakable(words):
            found[words] = None
    return list(found)


def heard(listener: Listener, pcm: Pcm) -> tuple[str, ...]:
    """The words of one utterance."""
    listener.start("")
    listener.feed(pcm)
    return listener.finish().texts


def measure(listener: Listener, voice: str, said: Sequence[tuple[str, ...]], show: bool = False) -> Errors:
    """The errors of sentences said by ``voice``."""
    speaker, errors = Speaker(voice), Errors()
    for place, words in enumerate(said):
        pcm = np.concatenate([unit.pcm for unit in units(speaker.say(words).pcm, place)])
        came = heard(listener, pcm)
        errors.add(words, came)
        if show and came != words:
            print(f"    {' '.join(words)} | {' '.join(came)}")
    return errors


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.hearing.evaluate", description=__doc__)
    parser.add_argument("--weights", type=Path, default=FILE)
    parser.add_argument("--sentences", type=int, default=SENTENCES, help="of each set")
    parser.add_argument("--show", action="store_true", help="print what was heard wrong")
    arguments = parser.parse_args()
    listener = Listeners(Vocabulary.read(FOLDER / "tokenizer.json"), FOLDER, arguments.weights)()
    parts: tuple[Part, ...] = ("train", "held out")
    for part in parts:
        said = sentences(part, arguments.sentences)
        for voice in VOICES:
            print(f"  phrasings {part:9} {voice:6}{measure(listener, voice, said, arguments.show)}", flush=True)


if __name__ == "__main__":
    main()
