"""The sessions' rules, searched over random orders of everything that can happen.

Whatever the order: an answer is that of a fresh session given the same sequence, a sequence is what was asked for,
budgets hold at every step (the runner asserts them), one session's failure is nobody else's, and nothing stays behind.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from duologue.engine.runners.base import Finish, Piece, Sampling, Tokens
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import WindowConfig
from tests.engine.runners.fake_runner import FakeRunner, answer, capacity, embeddings, states

NAMES = "abc"
TAIL = 60
WINDOWS = [None, WindowConfig(high=70, low=50), WindowConfig(rule="text", high=80, low=60, text_tokens=12)]


@dataclass
class Expected:
    """A session as a plain list of what should be in it."""

    prefix: list[Piece]
    units: list[tuple[list[Piece], tuple[int, ...] | None]] = field(default_factory=list)
    expected: tuple[int, ...] = ()
    """The whole answer to the segment that was asked for."""
    made: tuple[int, ...] = ()
    begun: tuple[int, ...] = ()
    asked: Sampling | None = None
    interrupted: bool = False

    def pieces(self, *, terminators: bool) -> list[Piece]:
        out = list(self.prefix)
        for pieces, tokens in self.units:
            out += pieces
            if tokens is not None:
                out.append(Tokens((*(tokens if terminators else tokens[:-1]), TAIL)))
        return out


class SessionsSearch(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.open: dict[str, Expected] = {}
        self.marks: dict[str, list[int]] = {}

    @initialize(cut=st.sampled_from(["anywhere", "block", "nowhere"]), window=st.sampled_from(WINDOWS),
                terminators=st.booleans(), blocks=st.sampled_from([8, 10, 14]), slots=st.sampled_from([1, 2, 8]))
    def begin(self, cut: str, window: WindowConfig | None, terminators: bool, blocks: int, slots: int) -> None:
        self.terminators, self.window = terminators, window
        limits = capacity(positions=blocks * 16, block=16, max_length=128, max_sessions=slots)
        self.runner = FakeRunner(limits, cut)  # type: ignore[arg-type]
        grammar = Grammar(terminators, (TAIL,), frozenset({61, 62}), ((50,), (51,)))
        self.sessions = Sessions(self.runner, grammar, window)

    def idle(self, name: str) -> Expected:
        """The session, opened if it is not, its segment let come to its end."""
        if name not in self.open:
            prefix: list[Piece] = [Tokens((ord(name) % 60,) * 5)]
            self.sessions.open(name, prefix)
            self.open[name] = Expected(prefix)
            self.marks[name] = [0]
        while name in self.open and self.open[name].asked is not None:
            self.step(1)
        return self.open[name] if name in self.open else self.idle(name)

    @rule(name=st.sampled_from(NAMES), rows=st.integers(1, 25), value=st.integers(0, 3), begun=st.integers(0, 2),
          tokens=st.integers(1, 12), seed=st.integers(0, 3), stop=st.booleans())
    def unit(self, name: str, rows: int, value: int, begun: int, tokens: int, seed: int, stop: bool) -> None:
        held = self.idle(name)
        pieces: list[Piece] = [Tokens((40,)), embeddings(rows, value)]
        sampling = Sampling(max_tokens=tokens, stop=frozenset({61, 62} if stop else ()), seed=seed)
        self.sessions.append(name, pieces)
        held.units.append((pieces, None))
        held.begun = tuple(range(begun))
        self.sessions.generate(name, sampling, "all" if seed else "none", begun=held.begun)
        held.asked, held.made, held.interrupted = sampling, (), False
        if self.sessions_has(name):
            sequence = [*self.sessions.sequence(name), *([Tokens(held.begun)] if begun else [])]
            held.expected = answer(sequence, sampling, 64)

    def sessions_has(self, name: str) -> bool:
        try:
            self.sessions.mark(name)
        except KeyError:
            return False
        return True

    @rule(name=st.sampled_from(NAMES), rows=st.integers(1, 25), made=st.lists(st.integers(0, 49), max_size=5))
    def record(self, name: str, rows: int, made: list[int]) -> None:
        held = self.idle(name)
        pieces: list[Piece] = [embeddings(rows, 7)]
        self.sessions.record(name, pieces, made, 5)
        held.units.append((pieces, tuple(made)))

    @rule(name=st.sampled_from(NAMES), back=st.integers(0, 6), made=st.lists(st.integers(0, 49), max_size=5))
    def revise(self, name: str, back: int, made: list[int]) -> None:
        held = self.idle(name)
        if back < len(held.units):
            number = len(held.units) - 1 - back
            self.sessions.revise(name, number, made)
            held.units[number] = (held.units[number][0], tuple(made))

    @rule(name=st.sampled_from(NAMES))
    def mark(self, name: str) -> None:
        if name in self.open:
            self.marks[name].append(self.sessions.mark(name))

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 5))
    def rollback(self, name: str, which: int) -> None:
        held = self.idle(name)
        mark = self.marks[name][which % len(self.marks[name])]
        self.marks[name] = [each for each in self.marks[name] if each <= mark]
        self.sessions.rollback(name, mark)
        del held.units[mark:]

    @rule(name=st.sampled_from(NAMES))
    def interrupt(self, name: str) -> None:
        if name in self.open and self.sessions_has(name):
            self.sessions.interrupt(name)
            self.open[name].interrupted = self.open[name].asked is not None

    @rule(name=st.sampled_from(NAMES))
    def fail(self, name: str) -> None:
        if name in self.runner.held and self.runner.held[name].segment is not None:
            self.runner.failing.add(name)

    @rule(name=st.sampled_from(NAMES))
    def close(self, name: str) -> None:
        self.sessions.close(name)
        self.open.pop(name, None)
        assert name not in self.runner.held

    @precondition(lambda self: self.sessions.ready)
    @rule(count=st.integers(1, 6))
    def step(self, count: int) -> None:
        for _ in range(count):
            failing = set(self.runner.failing)
            for output in self.sessions.step():
                held = self.open[output.session]
                assert held.asked is not None
                held.made += output.tokens
                assert held.made == held.expected[:len(held.made)]
                match output.finish:
                    case None:
                        continue
                    case Finish.FAILED:
                        assert output.session in failing or "would grow to" in output.detail
                        assert output.session not in self.runner.held
                        del self.open[output.session]
                        continue
                    case Finish.INTERRUPTED:
                        assert held.interrupted
                    case _:
                        assert held.made == held.expected
                held.units[-1] = (held.units[-1][0], (*held.begun, *held.made))
                held.asked = None

    @invariant()
    def sequences_are_what_was_asked_for(self) -> None:
        for name, held in self.open.items():
            if not self.sessions_has(name):
                continue
            is_so = states(self.sessions.sequence(name))
            asked_for = states(held.pieces(terminators=self.terminators))
            if self.window is None:
                assert is_so == asked_for
            else:
                assert len(is_so) <= max(len(asked_for), 80)
                assert is_so[:len(held.prefix)] == asked_for[:len(held.prefix)]

    @invariant()
    def somebody_can_always_go_on(self) -> None:
        if any(held.asked is not None for held in self.open.values()):
            assert self.sessions.ready

    def teardown(self) -> None:
        for name in list(self.open):
            self.close(name)
            assert self.open or not (self.runner.held or self.sessions.ready)


TestSessionsSearch = SessionsSearch.TestCase
TestSessionsSearch.settings = settings(max_examples=300, stateful_step_count=50, deadline=None, derandomize=True)
