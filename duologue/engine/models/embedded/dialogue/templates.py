"""A small language for phrasings, read two ways: as a speech grammar and as a parser of words.

One source for both keeps the recogniser's grammar and the dialogue from drifting apart. A template is a line
of words with ``[optional]`` parts, ``(one | other)`` choices, ``<rule>`` references, ``<rule:slot>``
references that are captured, and ``<any:slot>``, one or more free words. Rules must not be recursive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

ANY = "any"
"""The rule name that stands for free speech."""

_TOKEN = re.compile(r"\s*(<[^>]+>|[\[\]()|]|[^\s\[\]()|<>]+)")
_Captures = tuple[tuple[str, int, int], ...]


class TemplateError(ValueError):
    """A template that cannot be read; its text says where."""


@dataclass(frozen=True, slots=True)
class Word:
    """One literal word."""

    text: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a rule; its words are captured under ``slot`` unless that is empty."""

    rule: str
    slot: str


@dataclass(frozen=True, slots=True)
class Seq:
    """Parts one after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    """One of several; with ``optional``, none is allowed too."""

    choices: tuple[Node, ...]
    optional: bool = False


Node = Word | Ref | Seq | Alt


def read(template: str) -> Node:
    """The tree of ``template``; raises TemplateError."""
    tokens = _TOKEN.findall(template)
    if "".join(tokens) != re.sub(r"\s+", "", template).replace("\n", ""):
        raise TemplateError(f"cannot read {template!r}")
    node, rest = _choices(tokens, 0, template)
    if rest != len(tokens):
        raise TemplateError(f"unexpected {tokens[rest]!r} in {template!r}")
    return node


def _choices(tokens: Sequence[str], i: int, template: str) -> tuple[Node, int]:
    choices: list[Node] = []
    while True:
        parts: list[Node] = []
        while i < len(tokens) and tokens[i] not in "])|":
            token = tokens[i]
            if token in "[(":
                inner, i = _choices(tokens, i + 1, template)
                close = "]" if token == "[" else ")"
                if i >= len(tokens) or tokens[i] != close:
                    raise TemplateError(f"{token!r} is not closed in {template!r}")
                parts.append(Alt((inner,), optional=True) if token == "[" else inner)
            elif token.startswith("<"):
                rule, _, slot = token[1:-1].partition(":")
                parts.append(Ref(rule, slot))
            else:
                parts.append(Word(token))
            i += 1
        if not parts:
            raise TemplateError(f"an empty part in {template!r}")
        choices.append(parts[0] if len(parts) == 1 else Seq(tuple(parts)))
        if i < len(tokens) and tokens[i] == "|":
            i += 1
            continue
        return (choices[0] if len(choices) == 1 else Alt(tuple(choices))), i


@dataclass(frozen=True, slots=True)
class Parse:
    """Words understood as ``intent``; ``slots`` holds the captured words of each slot."""

    intent: str
    slots: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a grammar makes of some words.

    ``parse`` is None where they are no complete sentence. ``open`` says that more words could follow: with a
    parse the sentence could grow, without one it is the beginning of a sentence.
    """

    parse: Parse | None
    open: bool

    @property
    def incomplete(self) -> bool:
        """Whether the words are the beginning of a sentence and no sentence yet."""
        return self.parse is None and self.open


class Grammar:
    """Rules and intents, each a list of templates; earlier intents win where several read the same words."""

    def __init__(self, rules: Mapping[str, Sequence[str]], intents: Mapping[str, Sequence[str]],
                 lead: Sequence[str], tail: Sequence[str], bare: Sequence[str]) -> None:
        """``lead`` and ``tail`` are courtesies allowed around all but the ``bare`` intents; raises TemplateError."""
        self.rules = {name: _any_of([read(text) for text in texts]) for name, texts in rules.items()}
        self._intents = {name: _any_of([read(text) for text in texts]) for name, texts in intents.items()}
        self._lead = _any_of([read(text) for text in lead])
        self._tail = _any_of([read(text) for text in tail])
        self._bare = frozenset(bare)
        for node in (*self.rules.values(), *self._intents.values(), self._lead, self._tail):
            for ref in _refs(node):
                if ref.rule != ANY and ref.rule not in self.rules:
                    raise TemplateError(f"there is no rule <{ref.rule}>")

    @property
    def intents(self) -> tuple[str, ...]:
        """The names of all intents."""
        return tuple(self._intents)

    @cached_property
    def words(self) -> frozenset[str]:
        """Every literal word that a sentence may hold."""
        nodes = (*self.rules.values(), *self._intents.values(), self._lead, self._tail)
        return frozenset(word for node in nodes for word in _words(node))

    def read(self, words: Sequence[str]) -> Reading:
        """Reads ``words`` (lower case) as one sentence; its cost is bounded by the grammar's depth."""
        best: Parse | None = None
        starts, open_end = self._starts(words)
        for start in starts:
            for name, node in self._intents.items():
                bare = name in self._bare
                if bare and start:
                    continue
                match = _Match(self.rules, words)
                for end, captures in match.run(node, start, ()):
                    if best is None and (end == len(words) if bare else self._ends(words, end)):
                        best = Parse(name, {slot: " ".join(words[a:b]) for slot, a, b in captures})
                open_end = open_end or match.hungry
        return Reading(best, open_end)

    def covers(self, rule: str, words: Sequence[str]) -> bool:
        """Whether ``words`` are exactly one use of ``rule``."""
        match = _Match(self.rules, words)
        return any(end == len(words) for end, _ in match.run(Ref(rule, ""), 0, ()))

    def _starts(self, words: Sequence[str]) -> tuple[list[int], bool]:
        """Where the sentence proper may begin: at the start, or after courtesies; and if more of them may come."""
        match = _Match(self.rules, words)
        ends = [end for end, _ in match.run(self._lead, 0, ())]
        return [0, *sorted(set(ends), reverse=True)], match.hungry

    def _ends(self, words: Sequence[str], at: int) -> bool:
        return at == len(words) or any(
            end == len(words) for end, _ in _Match(self.rules, words).run(self._tail, at, ()))

    def fits(self, parse: Parse) -> bool:
        """Whether a phrasing of the intent has these slots, with such words in each."""
        return parse.intent in self._intents and any(
            form.keys() == parse.slots.keys()
            and all(rule == ANY or self.covers(rule, parse.slots[slot].split()) for slot, rule in form.items())
            for form in self._forms(self._intents[parse.intent]))

    def _forms(self, node: Node) -> Iterator[dict[str, str]]:
        """Each set of slots that may be filled together, with their rules."""
        match node:
            case Ref(rule, slot):
                yield {slot: rule} if slot else {}
            case Word():
                yield {}
            case Seq(parts):
                forms: list[dict[str, str]] = [{}]
                for part in parts:
                    forms = [form | more for form in forms for more in _distinct(self._forms(part))]
                yield from forms
            case Alt(choices, optional):
                for choice in choices:
                    yield from self._forms(choice)
                if optional:
                    yield {}

    @property
    def sentence(self) -> Node:
        """Everything a caller may say, as one tree."""
        polite = tuple(node for name, node in self._intents.items() if name not in self._bare)
        bare = tuple(self._intents[name] for name in self._intents if name in self._bare)
        return Alt((Seq((Alt((self._lead,), optional=True), Alt(polite), Alt((self._tail,), optional=True))),
                    *bare))


def _distinct(forms: Iterable[dict[str, str]]) -> list[dict[str, str]]:
    return [dict(items) for items in dict.fromkeys(tuple(form.items()) for form in forms)]


def _any_of(nodes: Sequence[Node]) -> Node:
    return nodes[0] if len(nodes) == 1 else Alt(tuple(nodes))


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Seq(parts):
            return parts
        case Alt(choices, _):
            return choices
        case _:
            return ()


def _refs(node: Node) -> Iterator[Ref]:
    if isinstance(node, Ref):
        yield node
    for child in _children(node):
        yield from _refs(child)


def _words(node: Node) -> Iterator[str]:
    if isinstance(node, Word):
        yield node.text
    for child in _children(node):
        yield from _words(child)


class _Match:
    """One backtracking match; ``hungry`` tells whether a word more was looked for past the last one."""

    def __init__(self, rules: Mapping[str, Node], words: Sequence[str]) -> None:
        self._rules = rules
        self._words = words
        self.hungry = False

    def run(self, node: Node, at: int, captures: _Captures) -> Iterator[tuple[int, _Captures]]:
        match node:
            case Word(text):
                if at == len(self._words):
                    self.hungry = True
                elif self._words[at] == text:
                    yield at + 1, captures
            case Ref(rule, slot):
                for end, inner in self._reference(rule, at, captures):
                    yield end, (*inner, (slot, at, end)) if slot else inner
            case Seq(parts):
                yield from self._sequence(parts, at, captures)
            case Alt(choices, optional):
                for choice in choices:
                    yield from self.run(choice, at, captures)
                if optional:
                    yield at, captures

    def _reference(self, rule: str, at: int, captures: _Captures) -> Iterator[tuple[int, _Captures]]:
        if rule != ANY:
            yield from self.run(self._rules[rule], at, captures)
            return
        if at == len(self._words):
            self.hungry = True
        # Shortest first: what follows the free words gets its chance before they swallow it.
        for end in range(at + 1, len(self._words) + 1):
            yield end, captures

    def _sequence(self, parts: tuple[Node, ...], at: int,
                  captures: _Captures) -> Iterator[tuple[int, _Captures]]:
        if not parts:
            yield at, captures
            return
        for end, inner in self.run(parts[0], at, captures):
            yield from self._sequence(parts[1:], end, inner)
