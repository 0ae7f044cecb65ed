"""Sentences drawn from templates are sentences of them."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.templates import TemplateError, read
from training.thinker.open_places import fill
from training.thinker.sampling import Callers, Sampler, trees

SEEDS = st.integers(0, 10**6)


@given(SEEDS)
def test_what_is_drawn_is_read_back_by_the_dialogue(seed: int) -> None:
    said = Callers(fill).sample(Random(seed))
    assert grammar().read(said.words).parse is not None, said


@given(SEEDS)
def test_a_slot_holds_its_own_words(seed: int) -> None:
    sampler = Sampler(trees({"item": ["apple", "green pear"]}), fill)
    said = sampler.sample(read("[please] fetch <item:left> and <item:right> (now | for <any:name>)"), Random(seed))
    text = " ".join(said.words)
    assert f"fetch {said.slots['left']} and {said.slots['right']} " in text
    assert said.slots["left"] in ("apple", "green pear")
    assert text.endswith(f" for {said.slots['name']}" if "name" in said.slots else " now")


@given(SEEDS)
def test_a_slot_around_slots_holds_the_words_of_all(seed: int) -> None:
    sampler = Sampler(trees({"pair": ["<one:first> and <one:second>"], "one": ["a", "b"]}), fill)
    said = sampler.sample(read("take <pair:both> now"), Random(seed))
    assert said.slots["both"] == f"{said.slots['first']} and {said.slots['second']}"
    assert said.words == ("take", *said.slots["both"].split(), "now")


def test_one_seed_draws_one_row_of_sentences() -> None:
    def row(seed: int) -> list[tuple[str, ...]]:
        random = Random(seed)
        return [Callers(fill).sample(random).words for _ in range(30)]
    assert row(3) == row(3)
    assert row(3) != row(4)


def test_every_intent_is_drawn() -> None:
    random, callers = Random(0), Callers(fill)
    assert {callers.sample(random).intent for _ in range(2000)} == set(grammar().intents)


def test_a_rule_that_there_is_not_is_said() -> None:
    with pytest.raises(TemplateError, match="no rule <fruit>"):
        Sampler({}, fill).sample(read("eat <fruit>"), Random(0))
