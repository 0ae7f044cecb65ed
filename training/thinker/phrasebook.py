"""What callers say, ready to be drawn from: the dialogue's first phrasings and those of ``phrasings``, by intent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import log
from random import Random
from typing import Literal

from duologue.engine.models.embedded.dialogue import intents
from duologue.engine.models.embedded.dialogue.templates import Alt, Node, Ref, Seq, Word, read
from training.thinker import open_places
from training.thinker.matching import Matcher
from training.thinker.phrasings import Phrasings, split
from training.thinker.sampling import RULES, Sampler, trees
from training.thinker.words import Words

Part = Literal["train", "held out"]

_NO_SKILLS = ("fragment", "backchannel")
_COURTESY = {True: 0.2, False: 0.08}
"""Share of sentences with a courtesy before or after them: of those that ask a skill, and of small talk."""
_LISTED = 0.5
"""Share of open places that are filled from lists; the others get random words."""
_COUNTED = 40
"""Sentences of each intent by which it is counted how much a word tells."""


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence: ``slots`` are places [start, end) in ``words``, in the order in which they came."""

    words: tuple[str, ...]
    slots: Mapping[str, tuple[int, int]]
    intent: str

    def value(self, slot: str) -> str:
        """The words of ``slot``."""
        start, end = self.slots[slot]
        return " ".join(self.words[start:end])


class Phrasebook:
    """Draws sentences of ``part`` of the phrasings; knows whose sentence some words are."""

    def __init__(self, phrasings: Phrasings, words: Words, part: Part) -> None:
        self.phrasings = phrasings
        self.words = words
        chosen = {intent: _chosen(intent, templates, part) for intent, templates in _templates(phrasings).items()}
        self.calls = tuple(intent for intent in chosen if intent not in phrasings.replies and chosen[intent])
        self.replies = tuple(intent for intent in chosen if intent in phrasings.replies and chosen[intent])
        nodes = {intent: [read(text) for text in texts] for intent, texts in chosen.items() if texts}
        self._nodes = {intent: (texts, list(accumulate(1 + log(_variants(text)) for text in texts)))
                       for intent, texts in nodes.items()}
        self._sampler = Sampler(trees(RULES | phrasings.rules), self._fill)
        known = nodes if part == "train" else {
            intent: [read(text) for text in (*_first(intent), *texts)] for intent, texts in phrasings.asked.items()}
        rules = trees(intents.RULES | phrasings.rules)
        self.matcher = Matcher(rules, {intent: Alt(tuple(texts)) for intent, texts in known.items()},
                               _any(intents.LEAD), _any(intents.TAIL))
        self.questions = Matcher(rules, {entry.asks: _any(entry.begun) for entry in phrasings.unfinished},
                                 _any(intents.LEAD), _any(intents.TAIL))
        """What is asked back where a sentence was only begun."""
        counted = {intent: [self._bare(intent, Random(number)) for number in range(_COUNTED)] for intent in nodes}
        self.slotted = frozenset(intent for intent, said in counted.items() if any(one.slots for one in said))
        """Intents whose sentences have slots."""
        self._telling = _telling(counted)

    def sentence(self, intent: str, random: Random) -> Said:
        """One sentence of ``intent``, and of no other, some with a courtesy around it."""
        while True:
            said = self._bare(intent, random)
            share = _COURTESY[intent in self.calls]
            lead = self.draw(random.choice(intents.LEAD), random) if random.random() < share else ()
            tail = self.draw(random.choice(intents.TAIL), random) if random.random() < share else ()
            words = (*lead, *said.words, *tail)
            if self.matcher.intents(words) == {intent}:
                slots = {slot: (start + len(lead), end + len(lead)) for slot, (start, end) in said.slots.items()}
                return Said(words, slots, intent)

    def draw(self, template: str, random: Random) -> tuple[str, ...]:
        """The words of one sentence of ``template``."""
        return self._sampler.sample(read(template), random).words

    def told(self, words: Iterable[str]) -> float:
        """How much ``words`` tell of what is wanted; a word that every intent has tells nothing."""
        return sum(self._telling.get(word, 0.0) for word in words)

    def _bare(self, intent: str, random: Random) -> Said:
        texts, sums = self._nodes[intent]
        sampled = self._sampler.sample(random.choices(texts, cum_weights=sums)[0], random)
        slots: dict[str, tuple[int, int]] = {}
        after = 0
        for slot, value in sampled.slots.items():
            wanted = tuple(value.split())
            start = next(i for i in range(after, len(sampled.words)) if sampled.words[i:i + len(wanted)] == wanted)
            after = start + len(wanted)
            slots[slot] = (start, after)
        return Said(sampled.words, slots, intent)

    def _fill(self, slot: str, random: Random) -> Sequence[str]:
        if random.random() < _LISTED:
            return open_places.fill(slot, random)
        if slot in ("name", "word"):
            return [self.words.any(random) if random.random() < 0.7 else self.words.some(1, random)[0]]
        return self.words.some(random.randint(1, 7), random)


def _telling(counted: Mapping[str, Sequence[Said]]) -> dict[str, float]:
    """How much each word outside slots tells: the more, the fewer intents have it."""
    having = Counter[str]()
    for said in counted.values():
        having.update({word for one in said for place, word in enumerate(one.words)
                       if not any(start <= place < end for start, end in one.slots.values())})
    return {word: log((1 + len(counted)) / (1 + count)) for word, count in having.items()}


def _templates(phrasings: Phrasings) -> dict[str, list[str]]:
    asked = phrasings.asked
    return {intent: asked.get(intent, []) for intent in (*intents.INTENTS, *asked) if intent not in _NO_SKILLS}


def _first(intent: str) -> list[str]:
    """The dialogue's own templates."""
    return intents.INTENTS.get(intent, [])


def _chosen(intent: str, templates: Sequence[str], part: Part) -> list[str]:
    train, held_out = split(templates)
    return [*_first(intent), *train] if part == "train" else held_out


def _any(templates: Iterable[str]) -> Node:
    return Alt(tuple(read(text) for text in templates))


def _variants(node: Node) -> float:
    """How many sentences ``node`` has, what it refers to counted as one."""
    match node:
        case Word() | Ref():
            return 1.0
        case Seq(parts):
            product = 1.0
            for part in parts:
                product *= _variants(part)
            return product
        case Alt(choices, optional):
            return sum(map(_variants, choices)) + optional
