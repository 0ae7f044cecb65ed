"""Sentences for the corpus: what an assistant says, what people say to one, and random words, so that no sound stays
rare.

One seed gives the same sentences everywhere. ``held_out`` sentences are drawn from words that ``sentences`` never uses.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from training.thinker import phrasings
from training.thinker.phrasebook import Phrasebook
from training.thinker.words import Words

HELD_OUT_WORDS = 6000
"""Dictionary words that no training sentence has."""
_TALKED = 0.3
"""Share of the sentences that are plain English: without them the voice knew words by themselves, not in company."""
_ELSEWHERE = 0.3
"""Share of these that are about anything."""
_ASKING = re.compile("(what|who|whose|which|where|when|why|how|is|are|was|were|do|does|did|can|could|will|would)$")
_LONG = 10
"""Letters from which a word counts as long: a fifth of the random ones are."""

_LISTS: dict[str, Any] = yaml.safe_load((files(__package__) / "texts.yaml").read_text(encoding="utf-8"))
_SHORT: list[str] = _LISTS["short"]
_FRAMES: list[str] = _LISTS["frames"]
_FUNCTION: list[str]
_TENS: list[str]
_ONES: list[str]
_FUNCTION, _TENS, _ONES = (_LISTS[name].split() for name in ("function", "tens", "ones"))


@cache
def words() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Dictionary words for training and those held out (the CMU dictionary as pocketsphinx ships it)."""
    text = (files("pocketsphinx") / "model/en-us/cmudict-en-us.dict").read_text(encoding="utf-8")
    known = sorted({line.split()[0] for line in text.splitlines() if re.match(r"[a-z]{2,16} ", line)})
    held_out = set(random.Random(1).sample(known, HELD_OUT_WORDS))
    return tuple(word for word in known if word not in held_out), tuple(sorted(held_out))


def spelled(number: int) -> str:
    """``number``, below a million, in words."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10 - 2] + (f" {_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        return f"{_ONES[number // 100]} hundred" + (f" and {spelled(number % 100)}" if number % 100 else "")
    return f"{spelled(number // 1000)} thousand" + (f" {spelled(number % 1000)}" if number % 1000 else "")


def sentences(seed: int) -> Iterator[str]:
    """Sentences without end, for training."""
    chosen = random.Random(seed)
    while True:
        yield _talked(chosen) if chosen.random() < _TALKED else _sentence(chosen, words()[0])


def held_out(count: int) -> list[str]:
    """Sentences to measure with: the same kinds, whose random words no training sentence has."""
    chosen = random.Random(2)
    return [_sentence(chosen, words()[1]) for _ in range(count)]


def measured() -> dict[str, list[str]]:
    """Sentences to recognise, by kind: 200 of plain English, of no kind that was learnt from; what an assistant says,
    with letters, figures and rare names; and random words, which no recogniser's language model can follow.
    """
    chosen, rare = random.Random(3), words()[1]
    unseen: list[str] = _LISTS["unseen"]
    return {"unseen sentences": unseen, "an assistant's": [_framed(chosen, rare) for _ in range(90)],
            "random words": [_random_words(chosen, rare) for _ in range(50)]}


def _sentence(chosen: random.Random, rare: tuple[str, ...]) -> str:
    kind = chosen.random()
    if kind < 0.08:
        return chosen.choice(_SHORT)
    if kind < 0.55:
        return _framed(chosen, rare)
    return _random_words(chosen, rare)


@cache
def _phrasebook() -> tuple[Phrasebook, frozenset[str]]:
    return Phrasebook(phrasings.load(), Words(), "train"), frozenset(words()[1])


def _talked(chosen: random.Random) -> str:
    book, unknown = _phrasebook()
    while True:
        if chosen.random() < _ELSEWHERE:
            said = book.draw(chosen.choice(book.phrasings.out_of_domain["train"]), chosen)
        else:
            said = book.sentence(chosen.choice((*book.calls, *book.replies)), chosen).words
        if said and not unknown & set(said):
            text = " ".join(word.capitalize() if re.match(r"i('|$)", word) else word for word in said)
            return text[0].upper() + text[1:] + ("?" if _ASKING.match(said[0]) else ".")


def _framed(chosen: random.Random, rare: tuple[str, ...]) -> str:
    return re.sub(r"{(\w+)}", lambda match: _slot(chosen, match[1], rare), chosen.choice(_FRAMES))


def _random_words(chosen: random.Random, rare: tuple[str, ...]) -> str:
    said = []
    for i in range(chosen.randint(1, 10)):
        said.append(chosen.choice(_FUNCTION) if i % 2 and chosen.random() < 0.5 else _rare(chosen, rare))
        if chosen.random() < 0.08:
            said[-1] += ","
    text = " ".join(said).rstrip(",")
    return text[0].upper() + text[1:] + chosen.choice("...?!")


def _rare(chosen: random.Random, rare: tuple[str, ...]) -> str:
    long = chosen.random() < 0.2
    while True:
        word = chosen.choice(rare)
        if (len(word) >= _LONG) == long:
            return word


def _slot(chosen: random.Random, name: str, rare: tuple[str, ...]) -> str:
    match name:
        case "time":
            hour, minute = chosen.randint(1, 12), chosen.randint(0, 59)
            said = "o'clock" if not minute else f"oh {spelled(minute)}" if minute < 10 else spelled(minute)
            return f"{spelled(hour)} {said}" + chosen.choice(["", " in the morning", " in the evening"])
        case "when":
            return chosen.choice(["tomorrow", "tonight", "in an hour", "on " + chosen.choice(_list("days"))])
        case "date":
            return spelled(chosen.randint(1, 31))
        case "year":
            return f"nineteen {spelled(chosen.randint(10, 99))}"
        case "small":
            return spelled(chosen.randint(0, 60))
        case "number":
            return spelled(chosen.randint(0, chosen.choice([20, 100, 1000, 100_000])))
        case "digits":
            return " ".join(_ONES[chosen.randint(0, 9)] for _ in range(chosen.randint(3, 8)))
        case "letters":
            return ", ".join(chosen.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for _ in range(chosen.randint(2, 6)))
        case "count":
            first = chosen.randint(1, 40)
            return ", ".join(spelled(first + i) for i in range(chosen.randint(3, 7)))
        case "rare":
            return _rare(chosen, rare)
        case _:
            return chosen.choice(_list({"city": "cities"}.get(name, f"{name}s")))


def _list(name: str) -> list[str]:
    words: list[str] = _LISTS[name].split()
    return words
