"""What the voice learns from, and what it is measured with."""

from __future__ import annotations

import re
from itertools import islice

from training.voice import corpus, texts


def test_a_word_held_out_is_in_no_training_sentence_that_draws_words() -> None:
    known, held_out = texts.words()
    assert len(held_out) == texts.HELD_OUT_WORDS
    assert not set(known) & set(held_out)


def test_one_seed_gives_one_corpus() -> None:
    assert list(islice(texts.sentences(4), 50)) == list(islice(texts.sentences(4), 50))
    assert list(islice(texts.sentences(4), 50)) != list(islice(texts.sentences(5), 50))


def test_what_is_measured_with_was_never_learnt_from() -> None:
    learnt = set(islice(texts.sentences(corpus.SEED), corpus.UTTERANCES))
    measured = texts.measured()
    assert len(set(measured["unseen sentences"])) == 200
    assert not learnt & set(measured["unseen sentences"])
    long = [word for text in measured["unseen sentences"] for word in re.findall(r"[a-z]{10,}", text.lower())]
    assert len(set(long)) >= 120


def test_no_slot_of_a_sentence_is_left_open() -> None:
    assert not any("{" in text or "}" in text for text in islice(texts.sentences(1), 2000))
