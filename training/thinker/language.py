"""The recogniser's language model: ``python -m training.thinker.language OUT`` writes ``OUT/hearing.lm.bin``.

pocketsphinx's general trigrams over its frequent words, mixed with trigrams of what callers say to this dialogue, and
pruned. Two minutes on one core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pocketsphinx

from duologue.engine.models.embedded.lexicon import pronunciations
from training.thinker import mixing, trie
from training.thinker.backoff import Backoff
from training.thinker.counts import ANY, Counted
from training.thinker.sampling import Callers

FILE = "hearing.lm.bin"
FREQUENT = 10_000
"""Words of the general model that are kept."""
SENTENCES = 100_000
SEED = 21
SHARE = 0.5
"""Of the fitted model, where the history tells nothing."""
SHARPNESS = 0.5
LEAST = 2e-8
"""Relative entropy, in nats a word, that an n-gram must be worth."""


def sentences(phrasings: Mapping[str, Sequence[str]], count: int, seed: int) -> list[tuple[str, ...]]:
    """What callers say, with ``ANY`` for every open place."""
    random, callers = Random(seed), Callers(lambda _slot, _random: (ANY,), phrasings)
    return [callers.sample(random).words for _ in range(count)]


def general(words: set[str], frequent: int) -> Backoff:
    """pocketsphinx's own model, over ``words`` and its ``frequent`` most frequent words that have a pronunciation."""
    model = trie.read(Path(pocketsphinx.get_model_path("en-us")) / "en-us.lm.bin")
    known = pronunciations()
    ranked = [model.words[i] for i in np.argsort(-model.ones.logs, kind="stable") if model.words[i] in known]
    return mixing.restricted(model, words | set(ranked[:frequent]))


def fitted(said: Sequence[Sequence[str]], base: Backoff, share: float, sharpness: float) -> Backoff:
    """``base`` mixed with the model of what is ``said``."""
    return mixing.mixed(base, Counted(said, base.words, np.exp(base.ones.logs)), share, sharpness)


def write(model: Backoff, path: Path) -> None:
    """Write ``model`` as pocketsphinx reads it fastest."""
    text = path.with_suffix(".arpa")
    model.write(text)
    # The logarithm has to outlive the model.
    logarithm, config = pocketsphinx.LogMath(), pocketsphinx.Config(loglevel="FATAL")
    read = pocketsphinx.NGramModel(config, logarithm, str(text))
    read.write(str(path), pocketsphinx.NGramModel.str_to_type("bin"))
    text.unlink()
