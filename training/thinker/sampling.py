"""Draws sentences from templates: the words, and which of them fill which slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from duologue.engine.models.embedded.dialogue import intents
from duologue.engine.models.embedded.dialogue.templates import ANY, Alt, Node, Ref, Seq, TemplateError, Word, read

Fill = Callable[[str, Random], Sequence[str]]
"""Words for an open place, given the name of its slot."""

RULES: dict[str, list[str]] = intents.RULES | {
    "number": 8 * ["<below_hundred>"] + 2 * ["<below_thousand>"] + intents.RULES["number"],
    "real": 8 * ["<number>"] + intents.RULES["real"],
}
"""The dialogue's rules, with small and whole numbers as frequent as they are."""
_COURTESY = 0.2
"""Share of sentences with a courtesy before or after them."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One sentence. ``slots`` holds the words of each slot, as the dialogue's parser gives them."""

    words: tuple[str, ...]
    slots: Mapping[str, str]
    intent: str = ""


class Sampler:
    """Draws from trees of templates that share ``rules``; ``fill`` gives the words of free speech."""

    def __init__(self, rules: Mapping[str, Node], fill: Fill) -> None:
        self._rules = rules
        self._fill = fill

    def sample(self, node: Node, random: Random) -> Sampled:
        """One sentence of ``node``; each choice is as likely as another, an optional part stays out half of the time.

        Raises TemplateError for a reference to a rule that there is not.
        """
        words: list[str] = []
        slots: dict[str, str] = {}
        for drawn in self._draw(node, random):
            if isinstance(drawn, str):
                words.append(drawn)
            else:
                slot, length = drawn
                slots[slot] = " ".join(words[len(words) - length:])
        return Sampled(tuple(words), slots)

    def _draw(self, node: Node, random: Random) -> Iterator[str | tuple[str, int]]:
        """Words, and after those of a slot its name and how many they are."""
        match node:
            case Word(text):
                yield text
            case Seq(parts):
                for part in parts:
                    yield from self._draw(part, random)
            case Alt(choices, optional):
                if not (optional and random.random() < 0.5):
                    yield from self._draw(random.choice(choices), random)
            case Ref(rule, slot):
                length = 0
                for drawn in self._refer(rule, slot, random):
                    length += isinstance(drawn, str)
                    yield drawn
                if slot:
                    yield slot, length

    def _refer(self, rule: str, slot: str, random: Random) -> Iterator[str | tuple[str, int]]:
        if rule == ANY:
            yield from self._fill(slot, random)
        elif rule in self._rules:
            yield from self._draw(self._rules[rule], random)
        else:
            raise TemplateError(f"there is no rule <{rule}>")


def trees(templates: Mapping[str, Sequence[str]]) -> dict[str, Node]:
    """Each name's templates as one choice between them; raises TemplateError."""
    return {name: Alt(tuple(read(text) for text in texts)) for name, texts in templates.items()}


class Callers:
    """What callers say to the dialogue, some of it with a courtesy around it."""

    def __init__(self, fill: Fill, phrasings: Mapping[str, Sequence[str]] = intents.INTENTS,
                 rules: Mapping[str, Sequence[str]] | None = None,
                 bare: Sequence[str] = ("fragment", "backchannel")) -> None:
        """``phrasings`` are the templates of each intent, ``rules`` those that only they use.

        Around a ``bare`` intent there is no courtesy. Raises TemplateError.
        """
        self._sampler = Sampler(trees({**RULES, **(rules or {})}), fill)
        self._intents = trees(phrasings)
        self._courtesies = trees({"lead": intents.LEAD, "tail": intents.TAIL})
        self._bare = frozenset(bare)

    def sample(self, random: Random, intent: str | None = None) -> Sampled:
        """One sentence of ``intent``, or of any, each as likely as another."""
        intent = intent or random.choice(tuple(self._intents))
        said = self._sampler.sample(self._intents[intent], random)
        words = said.words
        if intent not in self._bare:
            if random.random() < _COURTESY:
                words = (*self._sampler.sample(self._courtesies["lead"], random).words, *words)
            if random.random() < _COURTESY:
                words = (*words, *self._sampler.sample(self._courtesies["tail"], random).words)
        return Sampled(words, said.slots, intent)
