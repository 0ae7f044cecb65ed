"""The recogniser's language model: ``python -m training.thinker.language OUT`` writes it with its dictionary.

pocketsphinx's general trigrams over its frequent words, mixed with trigrams of what callers say to this dialogue, and
pruned. Two minutes on one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
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
from training.thinker.sampling import Callers

FREQUENT = 10_000
"""Words of the general model that are kept."""
SENTENCES = 800_000
SEED = 21
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


def sentences(count: int, seed: int) -> list[tuple[str, ...]]:
    """What callers say, with ``ANY`` for every open place; those with a word that nobody can pronounce are left out.

    Skills have half of them and small talk the other half, each intent as many as it has templates, and sums more.
    """
    texts, rules = phrasings()
    talk, known, random = load().replies, {*pronunciations(), ANY}, Random(seed)
    callers = Callers(lambda _slot, _random: (ANY,), texts, rules)
    groups = [[name for name in texts if (name in talk) is small] for small in (False, True)]
    drawn = (random.choices(group, [len(texts[name]) * OFTEN.get(name, 1) for name in group])[0]
             for group in (groups[i % 2] for i in range(count)))
    said = (callers.sample(random, name).words for name in drawn)
    return [words for words in said if known.issuperset(words)]


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
