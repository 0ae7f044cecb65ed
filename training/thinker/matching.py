"""Which intents' templates some words are a sentence of, and whether they are the beginning of one: by one automaton.

``dialogue.templates.Grammar`` answers the same and more, template by template; here there are thousands of them, and
every prefix of every sentence is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duologue.engine.models.embedded.dialogue.templates import ANY, Alt, Node, Ref, Seq, TemplateError, Word

_OTHER = ""
"""Stands for every word that no template names."""


class _Automaton:
    """A nondeterministic one (Thompson, CACM 11, 1968): arcs by word, arcs for any word, and empty ones."""

    def __init__(self, rules: Mapping[str, Node]) -> None:
        self._rules = rules
        self.by_word: list[dict[str, list[int]]] = []
        self.by_any: list[list[int]] = []
        self.empty: list[list[int]] = []

    def state(self) -> int:
        self.by_word.append({})
        self.by_any.append([])
        self.empty.append([])
        return len(self.empty) - 1

    def add(self, node: Node, begin: int, end: int) -> None:
        """Ways from ``begin`` to ``end`` by the sentences of ``node``."""
        match node:
            case Word(text):
                self.by_word[begin].setdefault(text, []).append(end)
            case Seq(parts):
                for part in parts[:-1]:
                    middle = self.state()
                    self.add(part, begin, middle)
                    begin = middle
                self.add(parts[-1], begin, end)
            case Alt(choices, optional):
                for choice in choices:
                    self.add(choice, begin, end)
                if optional:
                    self.empty[begin].append(end)
            case Ref(rule, _) if rule == ANY:
                free = self.state()
                self.by_any[begin].append(free)
                self.by_any[free].append(free)
                self.empty[free].append(end)
            case Ref(rule, _) if rule in self._rules:
                # Ways of its own: a choice that loops back would let words through that no template has.
                first, last = self.state(), self.state()
                self.empty[begin].append(first)
                self.add(self._rules[rule], first, last)
                self.empty[last].append(end)
            case Ref(rule, _):
                raise TemplateError(f"there is no rule <{rule}>")


class Matcher:
    """Built of each intent's templates; any of ``lead`` may stand before a sentence, any of ``tail`` behind it."""

    def __init__(self, rules: Mapping[str, Node], intents: Mapping[str, Node], lead: Node, tail: Node) -> None:
        made = _Automaton(rules)
        begin, first = made.state(), made.state()
        made.empty[begin].append(first)
        made.add(lead, begin, first)
        self._ends: dict[int, str] = {}
        for intent, node in intents.items():
            # A template that begins or ends with a choice must not share those states with others.
            entry, end, after = made.state(), made.state(), made.state()
            made.empty[first].append(entry)
            made.add(node, entry, end)
            made.add(tail, end, after)
            self._ends[end] = self._ends[after] = intent
        self._made = made
        self._words = frozenset(word for arcs in made.by_word for word in arcs)
        self._steps: dict[frozenset[int], dict[str, frozenset[int]]] = {}
        self._begin = self._closed({begin})

    def intents(self, words: Sequence[str]) -> frozenset[str]:
        """The intents of which ``words`` are a sentence."""
        return frozenset(self._ends[state] for state in self._after(words) if state in self._ends)

    def begins(self, words: Sequence[str]) -> bool:
        """Whether ``words`` are the beginning of a sentence of any intent, or one."""
        return bool(self._after(words))

    def begins_plainly(self, words: Sequence[str]) -> bool:
        """Whether ``words`` are the beginning of a sentence, and none of them in a place for any words."""
        states = self._begin
        for word in words:
            states = self._closed({target for state in states for target in self._made.by_word[state].get(word, ())})
        return bool(states)

    def _after(self, words: Sequence[str]) -> frozenset[int]:
        states = self._begin
        for word in words:
            if not states:
                break
            states = self._step(states, word if word in self._words else _OTHER)
        return states

    def _step(self, states: frozenset[int], word: str) -> frozenset[int]:
        steps = self._steps.setdefault(states, {})
        if word not in steps:
            made = self._made
            steps[word] = self._closed({target for state in states
                                        for target in (*made.by_word[state].get(word, ()), *made.by_any[state])})
        return steps[word]

    def _closed(self, states: set[int]) -> frozenset[int]:
        """``states`` and what empty arcs lead to."""
        found, left = set(states), list(states)
        while left:
            for target in self._made.empty[left.pop()]:
                if target not in found:
                    found.add(target)
                    left.append(target)
        return frozenset(found)
