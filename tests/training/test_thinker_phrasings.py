"""The phrasings that the thinker learns from can be read, mean one thing each, and ask skills for what they can do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random

import pytest

from duologue.engine.models.embedded.dialogue import intents
from duologue.engine.models.embedded.dialogue.memory import Context, Memory
from duologue.engine.models.embedded.dialogue.policy import HANDLERS
from duologue.engine.models.embedded.dialogue.templates import Alt, Grammar, read
from duologue.engine.models.embedded.lexicon import pronunciations
from duologue.engine.models.embedded.thinking.doubt import REFUSALS
from training.thinker.matching import Matcher
from training.thinker.open_places import fill
from training.thinker.phrasings import PhrasingsError, load, split
from training.thinker.sampling import RULES, Sampled, Sampler, trees

PHRASINGS = load()
SKILLS = sorted(set(HANDLERS) - {"backchannel"})
NOW = datetime(2026, 3, 21, 14, 30)
MISSED = ("I did not get", "I do not know the unit")
"""How skills begin to say that they cannot read their slots."""
SPOKEN_WORDS = 14
FREE = {"spell", "repeat", "remind", "set_name"}
"""Skills with a place for any words."""


@cache
def sampler() -> Sampler:
    return Sampler(trees(RULES | PHRASINGS.rules), fill)


def sentences(template: str, count: int) -> Iterator[Sampled]:
    random = Random(template)
    for _ in range(count):
        yield sampler().sample(read(template), random)


def grammar(templates: dict[str, list[str]], rules: dict[str, list[str]] | None = None) -> Grammar:
    return Grammar(intents.RULES | PHRASINGS.rules | (rules or {}), templates, intents.LEAD, intents.TAIL, bare=())


def matcher(templates: dict[str, list[str]]) -> Matcher:
    lead, tail = (Alt(tuple(map(read, texts))) for texts in (intents.LEAD, intents.TAIL))
    return Matcher(trees(intents.RULES | PHRASINGS.rules), trees(templates), lead, tail)


def beginnings() -> list[str]:
    return [begun for entry in PHRASINGS.unfinished for begun in entry.begun]


def test_every_template_is_read_with_its_rules() -> None:
    grammar(PHRASINGS.asked | {"unfinished": beginnings()})
    grammar(PHRASINGS.corrections, {"X": ["something else"]})
    grammar({"out_of_domain": PHRASINGS.out_of_domain["train"]})


def test_every_word_can_be_heard() -> None:
    whole = grammar(PHRASINGS.asked | {"unfinished": beginnings(), "out_of_domain": PHRASINGS.out_of_domain["train"]})
    assert whole.words <= set(pronunciations())


def test_every_skill_has_many_phrasings() -> None:
    assert sorted(PHRASINGS.calls) == SKILLS
    assert {name: len(texts) for name, texts in PHRASINGS.calls.items() if len(texts) < 24} == {}
    assert {name: len(reply.asked) for name, reply in PHRASINGS.replies.items() if len(reply.asked) < 14} == {}
    assert len(PHRASINGS.replies) >= 80
    assert len(beginnings()) >= 60
    assert min(map(len, PHRASINGS.corrections.values())) >= 20
    assert len(PHRASINGS.out_of_domain["train"]) >= 500
    assert len(PHRASINGS.out_of_domain["test"]) >= 120


def test_every_intent_has_phrasings_to_learn_and_to_be_examined_by() -> None:
    for name, texts in PHRASINGS.asked.items():
        train, held_out = split(texts)
        assert sorted(train + held_out) == sorted(texts), name
        assert len(held_out) == len(texts) // 6 > 0, name


@pytest.mark.parametrize("name", SKILLS)
def test_a_skill_can_do_what_its_phrasings_ask(name: str) -> None:
    memory = Memory(result=Fraction(10))
    for template in PHRASINGS.calls[name]:
        for said in sentences(template, 20 // len(PHRASINGS.calls[name]) + 3):
            context = Context(" ".join(said.words), NOW, 0.0, Random(0))
            text, _ = HANDLERS[name](said.slots, memory, context)
            assert text, said
            assert not text.startswith(MISSED), (said, text)


def test_no_sentence_is_asked_of_two_intents() -> None:
    # What free words make of a sentence is none of its template's: drawn ones are compared, not the templates.
    owner: dict[tuple[str, ...], str] = {}
    for name, texts in PHRASINGS.asked.items():
        for template in texts:
            for said in sentences(template, max(1, 200 // len(texts))):
                assert owner.setdefault(said.words, name) == name, said


def test_what_is_out_of_domain_is_no_intents_sentence() -> None:
    known = matcher(PHRASINGS.asked)
    strange = [said.words for text in PHRASINGS.out_of_domain["train"] for said in sentences(text, 3)]
    strange += [tuple(text.split()) for text in PHRASINGS.out_of_domain["test"]]
    assert {words: found for words in strange if (found := known.intents(words))} == {}


@pytest.mark.parametrize("name", sorted(PHRASINGS.calls))
def test_what_is_held_out_is_not_learnt_in_other_words(name: str) -> None:
    train, held_out = split(PHRASINGS.calls[name])
    known = grammar({str(place): [text] for place, text in enumerate([*intents.INTENTS.get(name, ()), *train])})
    for template in held_out:
        drawn = list(sentences(template, 8))
        learnt = [said for said in drawn
                  if (parse := known.read(said.words).parse) is not None and dict(parse.slots) == dict(said.slots)]
        assert len(learnt) < len(drawn) / 2, learnt


def test_a_sentence_that_only_begins_is_no_whole_one() -> None:
    known = matcher(PHRASINGS.asked)
    for template in beginnings():
        for said in sentences(template, 5):
            # "spell the word" could be a word as well: what has a place for any words takes these too.
            assert known.intents(said.words) <= FREE, said


def test_what_the_thinker_says_is_short_and_plain() -> None:
    said = [text for reply in PHRASINGS.replies.values() for text in reply.says]
    said += [entry.asks for entry in PHRASINGS.unfinished] + list(REFUSALS)
    for text in said:
        assert text.isascii(), text
        assert text[0].isupper(), text
        assert text.endswith((".", "?", "!")), text
        assert not any(letter.isdigit() for letter in text), text
        assert all(len(part.split()) <= SPOKEN_WORDS for part in text.replace("?", ".").split(".")), text


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in ("skills", "talk", "rules", "out_of_domain"):
        (tmp_path / part).mkdir()
    return tmp_path


def test_an_unknown_part_of_a_file_is_refused(folder: Path) -> None:
    (folder / "sounds.yaml").write_text("noises: [ahem]\nnoise: [hum]\n")
    with pytest.raises(PhrasingsError, match=r"sounds\.yaml: there is no part 'noise'"):
        load(folder)


def test_a_reply_named_as_a_skill_is_refused(folder: Path) -> None:
    (folder / "skills" / "time.yaml").write_text("- what time\n")
    (folder / "talk" / "time.yaml").write_text("says: [Late.]\nasked: [how late]\n")
    with pytest.raises(PhrasingsError, match="a skill and a reply are both called time"):
        load(folder)


def test_a_rule_of_two_files_is_refused(folder: Path) -> None:
    for name in ("sums", "units"):
        (folder / "rules" / f"{name}.yaml").write_text("some: [one and a half]\n")
    with pytest.raises(PhrasingsError, match=r"rules/units\.yaml: some is in another file too"):
        load(folder)
