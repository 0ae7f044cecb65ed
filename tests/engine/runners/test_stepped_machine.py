"""Any interleaving of segments, interruptions, cuts and drops against a slow reference that remembers no KV."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar, Literal

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from duologue.engine.runners.base import Embeddings, Finish, Generated, Piece, Segment, Tokens
from duologue.engine.runners.numpy import NumpyRunner
from duologue.engine.runners.torch import TorchRunner
from tests.engine.runners.kinds import on_numpy, on_torch
from tests.engine.runners.torch_reference import Reference, embeddings, segment, small, tokens

MAX_LENGTH = 60


@cache
def slow() -> Reference:
    return Reference(*small())


def cut(pieces: list[Piece], length: int) -> list[Piece]:
    """The first ``length`` positions."""
    kept: list[Piece] = []
    for piece in pieces:
        take = min(len(piece), length)
        kept.append(Tokens(piece.ids[:take]) if isinstance(piece, Tokens) else Embeddings(piece.rows[:take], b""))
        length -= take
    assert length == 0
    return [piece for piece in kept if len(piece)]


class Twin:
    """What the reference knows of a session: the whole sequence its KV should be of, as far as it was asked for."""

    def __init__(self) -> None:
        self.sequence: list[Piece] = []
        self.held = 0
        self.running: Segment | None = None
        self.said = 0

    def begin(self, asked: Segment) -> None:
        self.sequence = [*cut(self.sequence, asked.keep), *asked.pieces]
        self.running, self.said = asked, 0

    @property
    def length(self) -> int:
        return sum(len(piece) for piece in self.sequence)

    def hear(self, told: Generated) -> None:
        """Check what was said: the tokens are the best, the rows are right, and the segment ends when it should."""
        assert self.running is not None
        if told.rows is not None:
            assert self.running.hidden != "none"
            hidden, _ = slow().states(self.sequence)
            np.testing.assert_allclose(told.rows, hidden[told.first_row:told.first_row + len(told.rows)],
                                       atol=2e-4, rtol=1e-3)
        for token in told.tokens:
            _, logits = slow().states(self.sequence)
            assert logits[-1].max() - logits[-1][token] < 1e-3
            self.said += 1
            self.sequence.append(Tokens((token,)))
        if told.finish is None:
            return
        sampling = self.running.sampling
        if told.finish is Finish.INTERRUPTED and not self.said:
            assert self.running.keep <= told.cached <= self.length
        else:
            assert told.cached == self.length - (self.said > 0)
        if told.finish is not Finish.INTERRUPTED:
            stopped = sampling is None or self.sequence[-1] in [Tokens((id,)) for id in sampling.stop]
            assert told.finish is (Finish.STOP if stopped else Finish.LENGTH)
            assert stopped or (sampling is not None and self.said == sampling.max_tokens)
        self.sequence, self.held, self.running = cut(self.sequence, told.cached), told.cached, None


class RunnerMachine(RuleBasedStateMachine):
    kind: ClassVar[Callable[..., TorchRunner | NumpyRunner]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = type(self).kind(small(), positions=256, block=8, max_length=MAX_LENGTH, max_sessions=4,
                                      prefill_chunk=9)
        self.twins: dict[str, Twin] = {}

    sessions = st.sampled_from("abcd")

    @rule(session=sessions, keep=st.floats(0, 1), first=st.integers(0, 12), rows=st.integers(0, 12),
          last=st.integers(1, 4), seed=st.integers(0, 99), max_tokens=st.none() | st.integers(1, 6),
          hidden=st.sampled_from(["none", "generated", "all"]), stop=st.integers(0, 39))
    def submit(self, session: str, keep: float, first: int, rows: int, last: int, seed: int, max_tokens: int | None,
               hidden: Literal["none", "generated", "all"], stop: int) -> None:
        twin = self.twins.setdefault(session, Twin())
        if twin.running is not None:
            return
        assert self.runner.keepable(session, 10**6) == twin.held
        assert self.runner.keepable(session, 3) == min(3, twin.held)
        pieces = [piece for piece in (tokens(first, seed, 40), embeddings(rows, seed, 24), tokens(last, seed + 1, 40))
                  if len(piece)]
        room = MAX_LENGTH - sum(len(piece) for piece in pieces) - (max_tokens or 1)
        asked = segment(session, int(keep * min(twin.held, room)), pieces, max_tokens, hidden,
                        range(stop, min(stop + 8, 40)))
        self.runner.submit(asked)
        twin.begin(asked)

    @precondition(lambda self: self.runner.ready)
    @rule(steps=st.integers(1, 6))
    def step(self, steps: int) -> None:
        for _ in range(steps):
            for told in self.runner.step() if self.runner.ready else ():
                self.twins[told.session].hear(told)

    @rule(session=sessions)
    def interrupt(self, session: str) -> None:
        self.runner.interrupt(session)

    @rule(session=sessions)
    def drop(self, session: str) -> None:
        self.runner.drop(session)
        self.twins.pop(session, None)

    def teardown(self) -> None:
        while self.runner.ready:
            self.step(1)
        assert all(twin.running is None for twin in self.twins.values())
        for session in "abcd":
            self.runner.drop(session)
        assert self.runner._kv.free == 256


class TorchMachine(RunnerMachine):
    kind = on_torch


class NumpyMachine(RunnerMachine):
    kind = on_numpy


TestTorch, TestNumpy = TorchMachine.TestCase, NumpyMachine.TestCase
TestTorch.settings = TestNumpy.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
