"""The light runner's KV: what was written stays where it was, and blocks are counted."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.engine.runners.numpy.kv import KvArrays

POSITIONS, BLOCK = 42, 4


class ArraysMachine(RuleBasedStateMachine):
    """Each position holds a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.kv = KvArrays(2, 3, 5, POSITIONS, BLOCK)
        self.written: dict[str, list[int]] = {}
        self.next = 0

    sessions = st.sampled_from("abc")

    @rule(session=sessions, count=st.integers(1, 15))
    def grow(self, session: str, count: int) -> None:
        held = self.written.get(session, [])
        blocks = sum(-(-len(each) // BLOCK) for name, each in self.written.items() if name != session)
        fits = blocks + -(-(len(held) + count) // BLOCK) <= POSITIONS // BLOCK
        positions = self.kv.grow(session, count)
        assert positions == (range(len(held), len(held) + count) if fits else None)
        if positions is None:
            return
        new = list(range(self.next, self.next + count))
        self.next += count
        self.kv.cache(session)[:, :, :, positions.start:] = np.array(new, np.float32)[:, None]
        self.written[session] = held + new

    @rule(session=sessions, length=st.integers(0, 30))
    def truncate(self, session: str, length: int) -> None:
        self.kv.truncate(session, length)
        self.written[session] = self.written.get(session, [])[:length]

    @rule(session=sessions, scrub=st.booleans())
    def drop(self, session: str, scrub: bool) -> None:
        (self.kv.scrub if scrub else self.kv.drop)(session)
        self.written.pop(session, None)

    @invariant()
    def what_was_written_is_there(self) -> None:
        held = {session: numbers for session, numbers in self.written.items() if numbers}
        assert set(self.kv.sessions) == set(held)
        assert self.kv.free == BLOCK * (POSITIONS // BLOCK - sum(-(-len(each) // BLOCK) for each in held.values()))
        for session, numbers in held.items():
            assert self.kv.length(session) == len(numbers)
            cache = self.kv.cache(session)
            assert cache.shape == (2, 2, 3, len(numbers), 5)
            assert (cache == np.array(numbers, np.float32)[:, None]).all()


TestArrays = ArraysMachine.TestCase
TestArrays.settings = settings(max_examples=60, deadline=None)
