"""The recogniser's language model: ``python -m training.thinker.language OUT`` writes it with its dictionary.

pocketsphinx's general trigrams over its frequent words, mixed with trigrams of what callers say to this dialogue, and
pruned. Two minutes on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from random import Random

import numpy as np
import pocketsphinx

from duologue.engine.models.embedded.dialogue.intents import INTENTS, grammar
from duologue.engine.models.embedded.lexicon import DICTIONARY, LANGUAGE_MODEL, pronunciations, write_dictionary
from training.thinker import mixing, trie
from training.thinker.backoff import Backoff
from training.thinker.counts import ANY, Counted
from training.thinker.phrasings import load, split
from training.thinker.sampling import Callers, Sampled

FREQUENT = 10_000
"""Words of the general model that are kept."""
SENTENCES = 800_000
SEED = 21
PLAIN = 0.2
"""Share of the wordings that callers think of first: those written for variety are rarer than their number."""
OFTEN = {"arithmetic": 30, "count": 6, "convert": 3, "percent": 2}
"""How many times as often these are drawn: a number's n-grams are many, and rare each."""
SHARE = 0.5
"""Of the fitted model, where the history tells nothing."""
SHARPNESS = 1.0
LEAST = 3.8e-7
"""Relative entropy, in nats a word, that an n-gram must be worth."""


def phrasings() -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The templates to learn from, by intent, and the rules they use besides the dialogue's."""
    found = load()
    texts = {intent: list(templates) for intent, templates in INTENTS.items()}
    for intent, templates in found.asked.items():
        texts[intent] = texts.get(intent, []) + split(templates)[0]
    return texts, found.rules


class _Group:
    """Intents of ``callers``, each as frequent as its number says, sums more."""

    def __init__(self, callers: Callers, numbers: Mapping[str, int]) -> None:
        self._callers = callers
        self._names = list(numbers)
        self._sums = list(accumulate(number * OFTEN.get(name, 1) for name, number in numbers.items()))

    def draw(self, random: Random) -> Sampled:
        """One sentence."""
        return self._callers.sample(random, random.choices(self._names, cum_weights=self._sums)[0])


def sentences(count: int, seed: int) -> list[tuple[str, ...]]:
    """What callers say, with ``ANY`` for every open place; those with a word that nobody can pronounce are left out.

    The dialogue's first wordings have ``PLAIN`` of them, each intent as many as another. Of the others skills have half
    and small talk the other half, each intent as many as it has templates. Sums have more of both.
    """
    texts, rules = phrasings()
    talk, known, random = load().replies, {*pronunciations(), ANY}, Random(seed)
    callers = Callers(_any, texts, rules)
    groups = [_Group(Callers(_any, INTENTS, rules), dict.fromkeys(INTENTS, 1))]
    groups += [_Group(callers, {name: len(texts[name]) for name in texts if (name in talk) is small})
               for small in (False, True)]
    shares = (PLAIN, (1 - PLAIN) / 2, (1 - PLAIN) / 2)
    said = (group.draw(random).words for group in random.choices(groups, shares, k=count))
    return [words for words in said if known.issuperset(words)]


def _any(_slot: str, _random: Random) -> tuple[str, ...]:
    return (ANY,)


def general(words: Iterable[str], frequent: int) -> Backoff:
    """pocketsphinx's own model, over ``words`` and its ``frequent`` most frequent words that have a pronunciation."""
    model = trie.read(Path(pocketsphinx.get_model_path("en-us")) / "en-us.lm.bin")
    known = pronunciations()
    ranked = [model.words[i] for i in np.argsort(-model.ones.logs, kind="stable") if model.words[i] in known]
    return mixing.restricted(model, {*words, *ranked[:frequent]})


def fitted(said: Sequence[Sequence[str]], base: Backoff, share: float, sharpness: float) -> Backoff:
    """``base`` mixed with the model of what is ``said``."""
    return mixing.mixed(base, Counted(said, base.words, np.exp(base.ones.logs)), share, sharpness)


def write(model: Backoff, folder: Path) -> None:
    """Write ``model`` and its dictionary into ``folder``, as a decoder reads them fastest."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "hearing.arpa"
    model.write(text)
    read = pocketsphinx.NGramModel(pocketsphinx.Config(loglevel="FATAL"), pocketsphinx.LogMath(), str(text))
    read.write(str(folder / LANGUAGE_MODEL), pocketsphinx.NGramModel.str_to_type("bin"))
    text.unlink()
    known = pronunciations()
    write_dictionary(folder / DICTIONARY, {word: known[word] for word in model.words if word in known})


def main() -> None:
    """Make the model as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.thinker.language", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    said = sentences(SENTENCES, SEED)
    words = grammar().words | {word for sentence in said for word in sentence} - {ANY}
    model = fitted(said, general(words, FREQUENT), SHARE, SHARPNESS).pruned(LEAST)
    write(model, folder)
    print(f"{model.size} words, {len(model.twos.keys)} bigrams, {len(model.threes.keys)} trigrams, "
          f"{(folder / LANGUAGE_MODEL).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
