"""What is counted of misheard sentences."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.thinker.alignment import Pair, align, unlike
from training.thinker.confusions import counted, sentences
from training.thinker.speech import speakable

ROWS = st.lists(st.sampled_from(["count", "come", "to", "two", "seven", "stop", "a"]), max_size=6)


@given(ROWS, ROWS)
def test_every_word_said_and_every_word_heard_is_in_one_pair(said: list[str], heard: list[str]) -> None:
    pairs = align(said, heard)
    assert [pair.said for pair in pairs if pair.said is not None] == said
    assert [word for pair in pairs for word in pair.heard] == heard
    assert all(pair.said is not None or pair.heard for pair in pairs)


@given(ROWS)
def test_words_heard_right_are_their_own_pairs(said: list[str]) -> None:
    assert align(said, said) == [Pair(word, (word,)) for word in said]


@pytest.mark.parametrize(("said", "heard", "pairs"), [
    ("count to seven", "come to seven", [("count", "come"), ("to", "to"), ("seven", "seven")]),
    ("please stop", "stop", [("please", ""), ("stop", "stop")]),
    ("stop", "a stop", [(None, "a"), ("stop", "stop")]),
    ("cancel it", "pencil for it", [("cancel", "pencil for"), ("it", "it")]),
    ("it is alright", "it is all right", [("it", "it"), ("is", "is"), ("alright", "all right")]),
    ("who won the election", "you one the nail action",
     [("who", "you"), ("won", "one"), ("the", "the"), ("election", "nail action")]),
])
def test_a_word_is_paired_with_what_sounds_like_it(said: str, heard: str, pairs: list[tuple[str | None, str]]) -> None:
    assert [(pair.said, " ".join(pair.heard)) for pair in align(said.split(), heard.split())] == pairs


def test_the_same_sound_is_nearer_than_another() -> None:
    assert unlike("two", "two") == 0 < unlike("two", "too") < unlike("two", "do") < unlike("two", "story")


def test_words_left_out_put_in_and_replaced_are_counted_by_word() -> None:
    counts = counted([(("count", "to", "seven"), ("come", "to", "seven")), (("count", "to", "ten"), ("to", "ten", "a")),
                      (("stop",), ("stop",))])
    assert counts == {"sentences": 3, "exact": 0.3333, "words": {"count": 2, "seven": 1, "stop": 1, "ten": 1, "to": 2},
                      "substituted": {"count": [("come", 1)]}, "deleted": {"count": 1}, "inserted": {"a": 1}}


def test_no_sentence_has_a_word_that_cannot_be_said_or_known() -> None:
    said = list(islice(sentences(1), 200))
    assert all(speakable(words) for words in said)
    assert said == list(islice(sentences(1), 200))
    assert not speakable(("hm",))
    assert not speakable(("xyzzyness",))
