"""Whether words are left out, said twice or cut off: ``python -m training.voice.align [--sentences N]``.

Each sentence's sound is aligned by force to the phones of its words (pocketsphinx's acoustic model, no language model),
in a graph that goes from word to word and in which a detour has a price: to pass words over, to go back and say them
again, both by ``FARTHEST`` words at most, and to stop before the end. The best path takes one only where the sound pays
for it. The source voice is aligned to the same phones. That the measure would notice is measured too, with sound that
was made of another text: a word left out, a word doubled, the last word missing.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from pocketsphinx import Decoder

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.flite import FliteError
from duologue.engine.models.embedded.voice.sentences import SpokenWord
from duologue.engine.models.embedded.voice.symbols import PHONES, SYMBOLS
from duologue.engine.runners.numpy.blas import one_thread
from training.voice import texts
from training.voice.evaluate import surrounded
from training.voice.voices import Source, Trained

SENTENCES = 1000
DAMAGED = 100
"""Sentences of each kind of damage."""
FARTHEST = 2
PRICE = 1e-4
"""Probability of each detour, before the decoder's weight of its grammar (6.5)."""

Transition = tuple[int, int, float] | tuple[int, int, float, str]


def graph(words: Sequence[str]) -> list[Transition]:
    """The arcs between states 0 to n, of which i is before word i: from each to the words that may be said there."""
    n = len(words)
    arcs: list[Transition] = [(i, n, PRICE) for i in range(1, n)]
    for i in range(n + 1):
        for place in range(max(0, i - FARTHEST), min(n, i + FARTHEST)):
            arcs.append((i, place + 1, 1.0 if place == i else PRICE, words[place]))
    return arcs


def detours(path: Sequence[int], count: int) -> Counter[str]:
    """What is wrong with the places of the words that were found, of a sentence of ``count`` words."""
    wrong: Counter[str] = Counter()
    at = 0
    for place in path:
        if place < at:
            wrong["repeated"] += 1
        wrong["skipped"] += max(0, place - at)
        at = place + 1
    if at < count:
        wrong["stopped early"] += 1
    return +wrong


def cmu_phones(word: SpokenWord) -> str:
    """The word's phones in the recogniser's alphabet, which has no stress, and AH for flite's ax."""
    names = (SYMBOLS[i].rstrip("012") for i in word.symbols if SYMBOLS[i] in PHONES)
    return " ".join("AH" if name == "ax" else name.upper() for name in names)


class Aligner:
    """Aligns sounds to words given by their phones."""

    def __init__(self) -> None:
        self._decoder = Decoder(loglevel="FATAL", lm=None)

    def path(self, sound: Pcm, words: Sequence[str]) -> list[int]:
        """Places of the words that ``sound`` holds, in its order; ``words`` are phones."""
        decoder = self._decoder
        names = [f"{i}:{phones.replace(' ', '-')}" for i, phones in enumerate(words)]
        for name, phones in zip(names, words, strict=True):
            if decoder.lookup_word(name) is None:
                decoder.add_word(name, phones, update=False)
        decoder.add_fsg("sentence", decoder.create_fsg("sentence", 0, len(words), graph(names)))
        decoder.activate_search("sentence")
        decoder.start_utt()
        decoder.process_raw(surrounded(sound), full_utt=True)
        decoder.end_utt()
        found = [part.word for part in decoder.seg() or () if ":" in part.word]
        return [int(name.partition(":")[0]) for name in found]


class Count:
    """Detours of a voice."""

    def __init__(self) -> None:
        self.sentences = self.words = self.flawed = 0
        self.wrong: Counter[str] = Counter()

    def add(self, wrong: Counter[str], words: int) -> None:
        """Count a sentence."""
        self.sentences += 1
        self.words += words
        self.flawed += bool(wrong)
        self.wrong += wrong

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.wrong.items())) or "no detour"
        return f"{kinds} of {self.words} words; {self.flawed} of {self.sentences} sentences have one"


def _without(tokens: list[str], at: int) -> list[str]:
    return tokens[:at] + tokens[at + 1:]


DAMAGE: dict[str, Callable[[list[str], int], list[str]]] = {
    "a word left out": _without,
    "a word doubled": lambda tokens, at: [*tokens[:at + 1], *tokens[at:]],
    "the last word missing": lambda tokens, _at: tokens[:-1],
}


def measure(sentences: Sequence[str]) -> None:
    """Print the detours of both voices."""
    voice, source = Trained(), Source()
    voices: dict[str, Callable[[str], Pcm]] = {"source": source.say, "trained": voice.say}
    for name, say in voices.items():
        aligner, count = Aligner(), Count()
        for text in sentences:
            words = [cmu_phones(word) for word, _ in voice.read(text)]
            try:
                sound = say(text)
            except FliteError:
                continue
            path = aligner.path(sound, words)
            wrong = detours(path, len(words))
            count.add(wrong, len(words))
            if wrong:
                print(f"  {name}: {dict(wrong)}, words {path} of {len(words)} in: {text}", flush=True)
        print(f"{name}: {count}", flush=True)


def changed(sentences: Sequence[str], change: Callable[[list[str], int], list[str]]) -> Iterator[tuple[str, str]]:
    """Each sentence that has a word of five letters or more inside it, and the same with one of these damaged."""
    chosen = random.Random(0)
    for text in sentences:
        tokens = text.split()
        places = [i for i, token in enumerate(tokens[:-1]) if len(token) > 4 and i]
        if len(tokens) >= 4 and places:
            yield text, " ".join(change(tokens, chosen.choice(places)))


def damaged(sentences: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """Each kind of damage, in how many sentences it was found of how many whose words are those of the text."""
    voice = Trained()
    for kind, change in DAMAGE.items():
        aligner, found, count = Aligner(), 0, 0
        for text, said in changed(sentences, change):
            words = [cmu_phones(word) for word, _ in voice.read(text)]
            if len(text.split()) == len(words):
                found += bool(detours(aligner.path(voice.say(said), words), len(words)))
                count += 1
        yield kind, found, count


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.align", description=__doc__)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    parser.add_argument("--damaged", type=int, default=DAMAGED)
    arguments = parser.parse_args()
    one_thread()
    for kind, found, count in damaged(texts.held_out(arguments.damaged)):
        print(f"{kind}: found in {found} of {count}", flush=True)
    measure(texts.held_out(arguments.sentences))


if __name__ == "__main__":
    main()
