"""The smallest automaton that accepts a grammar's sentences: what the speech decoder searches.

A JSGF text of the same grammar makes a decoder expand every use of every rule (234 000 arcs, several times
slower than the free language model); determinised and minimised, some thousand arcs are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duologue.engine.models.embedded.dialogue.templates import ANY, Alt, Grammar, Node, Ref, Seq, Word


@dataclass(frozen=True, slots=True)
class Automaton:
    """A deterministic, minimal automaton over words; state 0 is the start, ``arcs`` are (from, to, word)."""

    states: int
    accepting: frozenset[int]
    arcs: tuple[tuple[int, int, str], ...]

    def accepts(self, words: Sequence[str]) -> bool:
        """Whether ``words`` are a sentence."""
        step = {(source, word): target for source, target, word in self.arcs}
        state: int | None = 0
        for word in words:
            if state is not None:
                state = step.get((state, word))
        return state in self.accepting


class _Builder:
    """Thompson's construction: words on arcs, empty arcs between the pieces."""

    def __init__(self, grammar: Grammar, free: Sequence[str]) -> None:
        self._rules = grammar.rules
        self._free = free
        self.words: list[list[tuple[str, int]]] = []
        self.empty: list[list[int]] = []

    def state(self) -> int:
        self.words.append([])
        self.empty.append([])
        return len(self.words) - 1

    def add(self, node: Node, source: int) -> int:
        """Adds paths that read ``node`` from ``source``; returns where they end."""
        match node:
            case Word(text):
                end = self.state()
                self.words[source].append((text, end))
                return end
            case Ref(rule, _) if rule == ANY:
                end = self.state()
                self.words[source] += [(word, end) for word in self._free]
                self.words[end] += [(word, end) for word in self._free]
                return end
            case Ref(rule, _):
                return self.add(self._rules[rule], source)
            case Seq(parts):
                for part in parts:
                    source = self.add(part, source)
                return source
            case Alt(choices, optional):
                end = self.state()
                for choice in choices:
                    begin = self.state()
                    self.empty[source].append(begin)
                    self.empty[self.add(choice, begin)].append(end)
                if optional:
                    self.empty[source].append(end)
                return end

    def closure(self, states: Sequence[int]) -> frozenset[int]:
        seen = set(states)
        stack = list(states)
        while stack:
            for target in self.empty[stack.pop()]:
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return frozenset(s for s in seen if self.words[s] or not self.empty[s])


def compile_grammar(grammar: Grammar, free: Sequence[str]) -> Automaton:
    """The automaton of ``grammar``; ``free`` are the words whose loop stands for free speech."""
    nfa = _Builder(grammar, free)
    start = nfa.state()
    final = nfa.add(grammar.sentence, start)
    first = nfa.closure([start])
    number = {first: 0}
    rows: list[dict[str, int]] = []
    queue = [first]
    for subset in queue:
        targets: dict[str, list[int]] = {}
        for state in subset:
            for word, end in nfa.words[state]:
                targets.setdefault(word, []).append(end)
        row: dict[str, int] = {}
        for word, ends in targets.items():
            reached = nfa.closure(ends)
            if reached not in number:
                number[reached] = len(queue)
                queue.append(reached)
            row[word] = number[reached]
        rows.append(row)
    return _minimal(rows, [final in subset for subset in queue])


def _minimal(rows: Sequence[dict[str, int]], accepts: Sequence[bool]) -> Automaton:
    """Merges states that no continuation tells apart (Moore's refinement)."""
    block = [int(accept) for accept in accepts]
    count = len(set(block))
    while True:
        keys: dict[tuple[int, frozenset[tuple[str, int]]], int] = {}
        block = [keys.setdefault((block[state], frozenset((word, block[end]) for word, end in row.items())),
                                 len(keys))
                 for state, row in enumerate(rows)]
        if len(keys) == count:
            break
        count = len(keys)
    # The start state is row 0, so its block is the first one numbered.
    arcs = {(block[state], block[end], word) for state, row in enumerate(rows) for word, end in row.items()}
    accepting = frozenset(block[state] for state, accept in enumerate(accepts) if accept)
    return Automaton(count, accepting, tuple(sorted(arcs)))
