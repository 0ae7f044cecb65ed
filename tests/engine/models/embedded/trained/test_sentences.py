"""Written words become phones and marks, the same however they come."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.speakable import Scanner, Word
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer
from duologue.engine.models.embedded.voice.sentences import Sentences, SpokenWord
from duologue.engine.models.embedded.voice.symbols import SYMBOLS
from tests.engine.models.embedded.trained.conftest import Modules


@pytest.fixture(scope="module")
def pronouncer(modules: Modules) -> Pronouncer:
    return Pronouncer(modules.folder)


def scanned(text: str) -> list[Word]:
    scanner = Scanner()
    return [*scanner.push(text), *scanner.finish()]


def taken(sentences: Sentences) -> list[tuple[SpokenWord, SpokenWord | None]]:
    found = []
    while sentences.ready:
        found.append(sentences.next())
    return found


def said(pronouncer: Pronouncer, text: str) -> list[SpokenWord]:
    sentences = Sentences(pronouncer)
    sentences.push(scanned(text))
    sentences.finish()
    found = [word for word, _ in taken(sentences)]
    assert sentences.done
    return found


def shown(words: Sequence[SpokenWord]) -> list[str]:
    return [" ".join(SYMBOLS[i] for i in word.symbols) for word in words]


@pytest.mark.parametrize(("text", "words"), [
    ("The apple.", ["dh iy0 |", "ae1 p ax0 l |."]),
    ("The dog.", ["dh ax0 |", "d ao1 g |."]),
    ("the 8", ["dh iy0 |", "ey1 t |."]),
    ("Where is the?", ["w eh1 r |", "ih1 z |", "dh ax0 |."]),
    ("A dog, a, b.", ["ax0 |", "d ao1 g |,", "ey0 |,", "b iy1 |."]),
    ("It's Jack's and James's cat.", ["ih1 t |", "s |", "jh ae1 k |", "s |", "ae1 n d |", "jh ey1 m z |", "ax0 z |",
                                      "k ae1 t |."]),
    ("Who'll say we'd", ["hh uw1 |", "l |", "s ey1 |", "w iy1 |", "d |."]),
    ("It — yes", ["ih1 t |,", "y eh1 s |."]),
    ("The the end.", ["dh ax0 |", "dh iy0 |", "eh1 n d |."]),
    ("Go! Now", ["g ow1 |.", "n aw1 |."]),
    ("at 7:05", ["ae1 t |", "s eh1 v ax0 n |", "ow1 |", "f ay1 v |."]),
    ("does", ["d ah1 z |."]),
])
def test_words_are_said_as_their_source_says_them(pronouncer: Pronouncer, text: str, words: list[str]) -> None:
    assert shown(said(pronouncer, text)) == words


def test_a_written_word_of_several_begins_and_ends_once(pronouncer: Pronouncer) -> None:
    words = said(pronouncer, "Call 555 now")
    assert [(word.written.start, word.begins, word.ends) for word in words] == [
        (0, True, True), (5, True, False), (5, False, False), (5, False, False), (5, False, False), (5, False, True),
        (9, True, True)]


def test_a_word_is_given_out_once_the_next_one_is_certain_and_at_once_at_a_full_stop(pronouncer: Pronouncer) -> None:
    sentences = Sentences(pronouncer)
    one, two, three, four = scanned("one two three. four")
    sentences.push([one, two])
    assert not sentences.ready
    sentences.push([three])
    assert len(taken(sentences)) == 3
    sentences.push([four])
    assert not sentences.ready
    sentences.finish()
    assert shown([word for word, _ in taken(sentences)]) == ["f ao1 r |."]
    assert sentences.done


def test_the_waits_for_the_word_behind_it(pronouncer: Pronouncer) -> None:
    sentences = Sentences(pronouncer)
    words = scanned("on the old bus")
    sentences.push(words[:3])
    assert not sentences.ready
    sentences.push(words[3:])
    assert shown([word for word, _ in taken(sentences)]) == ["aa1 n |", "dh iy0 |"]


@pytest.mark.parametrize("comma", [0, 20])
def test_a_sentence_without_end_is_cut_where_the_talkers_experience_ends(pronouncer: Pronouncer, comma: int) -> None:
    text = " ".join("word," if i == comma else "word" for i in range(1, 60))
    closes = [i for i, word in enumerate(said(pronouncer, text), 1) if word.closes]
    assert closes == ([26, 52, 59] if not comma else [20, 46, 59])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["the", "a", "owl", "it's", "10:30,", "no.", "—", "☃", "'", "Yes!", "USB", "%"]),
                max_size=60),
       st.randoms(use_true_random=False))
def test_words_that_come_one_by_one_are_said_as_if_they_came_together(
        pronouncer: Pronouncer, texts: list[str], cuts: Random) -> None:
    words = scanned(" ".join(texts))
    together, apart = Sentences(pronouncer), Sentences(pronouncer)
    together.push(words)
    together.finish()
    whole = taken(together)
    pieces = []
    while words:
        size = cuts.randint(1, 4)
        apart.push(words[:size])
        words = words[size:]
        pieces += taken(apart)
    apart.finish()
    pieces += taken(apart)
    assert pieces == whole
    assert together.done
    assert apart.done
    assert not whole or whole[-1][0].closes
    assert all((after is None) == word.closes for word, after in whole)
