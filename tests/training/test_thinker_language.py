"""The language model's arithmetic, held to plain sums over a few words and to pocketsphinx's own reader."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pocketsphinx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.lexicon import LANGUAGE_MODEL
from training.thinker import language, mixing, trie
from training.thinker.backoff import BEGIN, END, Backoff, Grams
from training.thinker.counts import ANY, Counted
from training.thinker.phrasings import load, split
from training.thinker.trie import TrieError

WORDS = tuple(sorted((BEGIN, END, "count", "seven", "stop", "to")))
SIZE = len(WORDS)
SENTENCES = st.lists(st.lists(st.sampled_from(["count", "seven", "stop", "to"]), min_size=1, max_size=6),
                     min_size=1, max_size=8)
GENERAL = st.integers(0, 10**6)


def numbers(*words: str) -> list[int]:
    return [WORDS.index(word) for word in words]


def backoff(seed: int) -> Backoff:
    """A model of random n-grams; the history and the tail of each trigram are there as bigrams."""
    random = np.random.default_rng(seed)
    pairs = np.flatnonzero(random.random(SIZE**2) < 0.4)
    triples = np.array([key for key in range(SIZE**3) if random.random() < 0.5
                        and key // SIZE in pairs and key % SIZE**2 in pairs], np.int64)
    ones = np.log(random.dirichlet(np.ones(SIZE)))
    twos, threes = (Grams(keys, np.log(random.uniform(0.01, 0.15, len(keys))), np.zeros(len(keys)))
                    for keys in (pairs, triples))
    return Backoff(WORDS, Grams(np.arange(SIZE), ones, np.zeros(SIZE)), twos, threes).normalised()


def table(model: Backoff) -> np.ndarray[tuple[int, int, int], np.dtype[np.float64]]:
    """P(w | u, v) of all words."""
    return np.exp(model.log_three(np.arange(SIZE**3))).reshape(SIZE, SIZE, SIZE)


def uniform() -> Backoff:
    return Backoff(WORDS, Grams(np.arange(SIZE), np.full(SIZE, -math.log(SIZE)), np.zeros(SIZE)),
                   *(Grams(np.zeros(0, np.int64), np.zeros(0), np.zeros(0)) for _ in range(2)))


# --- backing off ------------------------------------------------------------------------------------------

@given(GENERAL)
def test_what_may_follow_adds_up_to_one_in_every_history(seed: int) -> None:
    assert table(backoff(seed)).sum(axis=2) == pytest.approx(1.0)


@given(GENERAL, st.floats(1e-6, 0.1))
def test_a_pruned_model_adds_up_to_one_and_is_smaller(seed: int, least: float) -> None:
    model = backoff(seed)
    pruned = model.pruned(least)
    assert table(pruned).sum(axis=2) == pytest.approx(1.0)
    assert set(pruned.threes.keys) <= set(model.threes.keys)
    assert set(pruned.twos.keys) <= set(model.twos.keys)


@given(GENERAL)
def test_a_trigram_is_worth_the_relative_entropy_of_the_model_without_it(seed: int) -> None:
    model = backoff(seed)
    if not len(model.threes.keys):
        return
    gone = np.arange(len(model.threes.keys)) != seed % len(model.threes.keys)
    key = int(model.threes.keys[~gone][0])
    without = Backoff(model.words, model.ones, model.twos, model.threes.kept(gone)).normalised()
    first = np.exp(model.ones.logs)
    first[WORDS.index(BEGIN)] = first[WORDS.index(END)]
    u, v = key // SIZE // SIZE, key // SIZE % SIZE
    old, new = table(model)[u, v], table(without)[u, v]
    entropy = first[u] * math.exp(model.log_two(np.array([key // SIZE]))[0]) * float((old * np.log(old / new)).sum())
    # It stays at any price below that and goes at any above.
    assert entropy <= 1e-9 or key in model.pruned(entropy * 0.999).threes.keys
    assert key not in model.pruned(entropy * 1.001 + 1e-9).threes.keys


# --- counting ---------------------------------------------------------------------------------------------

@given(SENTENCES)
def test_counted_probabilities_are_witten_and_bells(sentences: list[list[str]]) -> None:
    base = np.full(SIZE, 1 / SIZE)
    model = Counted(sentences, WORDS, base)
    rows = [[BEGIN, *sentence, END] for sentence in sentences]
    seen = {order: Counter(tuple(row[i - order + 1:i + 1]) for row in rows for i in range(max(order - 1, 1), len(row)))
            for order in (1, 2, 3)}

    def probability(gram: tuple[str, ...]) -> float:
        lower = probability(gram[1:]) if len(gram) > 1 else 1 / SIZE
        same = {other: count for other, count in seen[len(gram)].items() if other[:-1] == gram[:-1]}
        total = sum(same.values())
        return (same.get(gram, 0) + len(same) * lower) / (total + len(same)) if total else lower
    for gram in product(WORDS, repeat=3):
        u, v, w = (np.array([number]) for number in numbers(*gram))
        assert model.three(u, v, w)[0] == pytest.approx(probability(gram))


def test_no_history_reaches_over_an_open_place() -> None:
    model = Counted([("count", ANY, "to", "seven")] * 50, WORDS, np.full(SIZE, 1 / SIZE))
    count, to, seven = (np.array(numbers(word)) for word in ("count", "to", "seven"))
    opened = np.array([SIZE])
    assert model.two(count, opened)[0] > 0.9
    assert model.two(to, seven)[0] > 0.9
    # "to" follows words that are not known: it is as likely as it is anywhere.
    assert model.two(count, to)[0] < 0.1
    assert not {tuple(pair) for pair in model.pairs.tolist()} & {tuple(numbers("count", "to"))}
    assert (model.pairs < SIZE).all()
    assert (model.triples < SIZE).all()


# --- mixing -----------------------------------------------------------------------------------------------

@given(SENTENCES, GENERAL, st.floats(0.05, 0.95), st.floats(0.0, 1.0))
def test_a_mixture_adds_up_to_one(sentences: list[list[str]], seed: int, share: float, sharpness: float) -> None:
    general = backoff(seed)
    model = mixing.mixed(general, Counted(sentences, WORDS, np.exp(general.ones.logs)), share, sharpness)
    assert table(model).sum(axis=2) == pytest.approx(1.0)


@given(SENTENCES, GENERAL, st.floats(0.05, 0.95))
def test_with_no_sharpness_every_history_has_the_same_shares(sentences: list[list[str]], seed: int,
                                                             share: float) -> None:
    general = backoff(seed)
    counted = Counted(sentences, WORDS, np.exp(general.ones.logs))
    model = mixing.mixed(general, counted, share, 0.0)
    u, v, w = counted.triples.T
    keys = (u * SIZE + v) * SIZE + w
    wanted = share * counted.three(u, v, w) + (1 - share) * np.exp(general.log_three(keys))
    room = np.bincount(u * SIZE + v, np.exp(model.log_three(keys)), SIZE**2)[u * SIZE + v]
    # Where its own n-grams have nearly all of a history, a little is left to the others.
    free = room < 0.998
    assert np.exp(model.log_three(keys))[free] == pytest.approx(wanted[free])


def test_a_history_that_only_callers_know_is_theirs() -> None:
    counted = Counted([("count", "to", "seven")] * 100, WORDS, np.full(SIZE, 1 / SIZE))
    key = np.array([(numbers("count")[0] * SIZE + numbers("to")[0]) * SIZE + numbers("seven")[0]])
    flat, sharp = (math.exp(mixing.mixed(uniform(), counted, 0.5, sharpness).log_three(key)[0]) for sharpness in (0, 1))
    assert flat == pytest.approx(0.5 * 1.0 + 0.5 / SIZE, abs=0.02)
    assert sharp > 0.9


def test_an_open_place_is_filled_with_what_is_said_elsewhere() -> None:
    pairs = np.arange(SIZE**2)
    logs = np.log(np.random.default_rng(1).dirichlet(np.ones(SIZE), SIZE)).reshape(-1)
    general = Backoff(WORDS, uniform().ones, Grams(pairs, logs, np.zeros(SIZE**2)), uniform().threes).normalised()
    counted = Counted([("count", ANY)] * 100, WORDS, np.full(SIZE, 1 / SIZE))
    model = mixing.mixed(general, counted, 0.9, 0.0)
    after = numbers("count")[0] * SIZE + np.arange(SIZE)
    assert np.exp(model.log_two(after)) == pytest.approx(np.exp(general.log_two(after)), abs=0.02)


@given(GENERAL)
@settings(max_examples=20)
def test_a_model_of_fewer_words_keeps_their_ratios(seed: int) -> None:
    general = backoff(seed)
    fewer = mixing.restricted(general, ("stop", "to"))
    assert fewer.words == tuple(sorted((BEGIN, END, "stop", "to")))
    assert set(np.unique(fewer.twos.keys)) == set(fewer.twos.keys)
    for u, v, w in product(range(fewer.size), repeat=3):
        key = np.array([(u * fewer.size + v) * fewer.size + w])
        old = [general.words.index(fewer.words[number]) for number in (u, v, w)]
        if (fewer.threes.keys == key).any():
            total = table(general)[old[0], old[1]][[general.words.index(word) for word in fewer.words]].sum()
            assert math.exp(fewer.log_three(key)[0]) == pytest.approx(table(general)[tuple(old)] / total, rel=0.02)


# --- files ------------------------------------------------------------------------------------------------

def test_pocketsphinx_reads_what_is_written_and_it_is_read_back(tmp_path: Path) -> None:
    model = backoff(7)
    language.write(model, tmp_path)
    logarithm = pocketsphinx.LogMath()
    theirs = pocketsphinx.NGramModel(pocketsphinx.Config(loglevel="FATAL"), logarithm, str(tmp_path / LANGUAGE_MODEL))
    again = trie.read(tmp_path / LANGUAGE_MODEL)
    assert again.words == WORDS
    for gram in product(WORDS, repeat=3):
        u, v, w = numbers(*gram)
        key = np.array([(u * SIZE + v) * SIZE + w])
        # pocketsphinx wants the newest word first.
        judged = theirs.prob(list(reversed(gram))) * math.log(1.0001)
        assert judged == pytest.approx(model.log_three(key)[0], abs=0.01)
        assert again.log_three(key)[0] == pytest.approx(judged, abs=0.001)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(b"RIFF and more")
    with pytest.raises(TrieError, match=r"other\.bin is no trigram model"):
        trie.read(path)


def test_nothing_held_out_is_learnt_from() -> None:
    texts, _ = language.phrasings()
    for intent, templates in load().asked.items():
        assert not set(split(templates)[1]) & set(texts[intent]), intent
