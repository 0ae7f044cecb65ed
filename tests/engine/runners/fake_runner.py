"""A runner whose tokens are a pure function of the sequence, and which holds its caller to the contract.

The state of a position is a hash of everything up to it. The next token and a position's hidden state come of that
state alone, so a single position that is wrong, missing or doubled changes all that follows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from duologue.engine.runners.base import (
    Capacity,
    Embeddings,
    Finish,
    Generated,
    Piece,
    Rows,
    Sampling,
    Segment,
    Tokens,
)

Cut = Literal["anywhere", "block", "nowhere"]
"""Where a runner can cut its KV; ``nowhere`` is one that can only go on, as a streaming-input request is."""


def capacity(positions: int = 4096, block: int = 16, max_length: int = 1024, max_sessions: int = 8,
             vocabulary: int = 64) -> Capacity:
    return Capacity(positions, block, max_length, max_sessions, hidden_size=4, vocabulary=vocabulary)


def embeddings(rows: int, value: float = 0.0, hidden_size: int = 4) -> Embeddings:
    content = np.full((rows, hidden_size), value, np.float32)
    return Embeddings(content, content.tobytes())


def states(pieces: Iterable[Piece], state: int = 0) -> list[int]:
    """The state after each position of ``pieces``, of which the one before the first is ``state``."""
    out = []
    for piece in pieces:
        positions = [b"t%d" % id for id in piece.ids] if isinstance(piece, Tokens) \
            else [b"e%d" % i + piece.key for i in range(len(piece))]
        for position in positions:
            state = zlib.crc32(position, state)
            out.append(state)
    return out


def choose(state: int, sampling: Sampling, made: int, vocabulary: int) -> int:
    if sampling.at_budget is not None and made == sampling.max_tokens - 1:
        return sampling.at_budget
    allowed = sampling.first if sampling.first and not made else range(vocabulary)
    bias = dict(sampling.bias)
    # A bias is so many more tickets in the lottery, or none at all where others have some.
    left = [id for id in allowed if id not in sampling.forbidden]
    candidates = [id for id in left for _ in range(1 + int(bias.get(id, 0)))] or left
    return candidates[zlib.crc32(b"%d" % sampling.seed, state) % len(candidates)]


def answer(pieces: Iterable[Piece], sampling: Sampling, vocabulary: int) -> tuple[int, ...]:
    """The whole answer to a sequence."""
    state = states(pieces)[-1]
    tokens: list[int] = []
    while True:
        tokens.append(choose(state, sampling, len(tokens), vocabulary))
        if tokens[-1] in sampling.stop or len(tokens) == sampling.max_tokens:
            return tuple(tokens)
        state = states([Tokens((tokens[-1],))], state)[-1]


@dataclass
class Held:
    kv: list[int] = field(default_factory=list)
    """The state after each position held."""
    segment: Segment | None = None
    waiting: list[int] = field(default_factory=list)
    """States of what was submitted and not computed yet."""
    made: int = 0
    last: int | None = None
    interrupted: bool = False


class FakeRunner:
    """Computes a segment's prefill in one step and one token in each after it."""

    def __init__(self, limits: Capacity, cut: Cut = "anywhere") -> None:
        self.capacity = limits
        self.cut = cut
        self.held: dict[str, Held] = {}
        self.failing: set[str] = set()
        """Sessions whose next step fails."""
        self.prefilled = 0
        """Positions that were submitted, all in all."""
        self.peak_blocks = 0
        self.closed = False

    def keepable(self, session: str, positions: int) -> int:
        assert positions >= 0
        held = self.held.get(session)
        if held is None or (self.cut == "nowhere" and positions < len(held.kv)):
            return 0
        most = min(positions, len(held.kv))
        return most // self.capacity.block * self.capacity.block if self.cut == "block" else most

    def submit(self, segment: Segment) -> None:
        held = self.held.setdefault(segment.session, Held())
        assert held.segment is None, "one segment at a time"
        assert segment.keep == self.keepable(segment.session, segment.keep) or segment.keep == 0, "not keepable"
        count = sum(map(len, segment.pieces))
        assert count, "at least one position is given"
        self.prefilled += count
        del held.kv[segment.keep:]
        held.waiting = states(segment.pieces, held.kv[-1] if held.kv else 0)
        held.segment, held.made, held.last, held.interrupted = segment, 0, None, False
        self._check()

    def interrupt(self, session: str) -> None:
        held = self.held.get(session)
        if held is not None and held.segment is not None:
            held.interrupted = True

    def drop(self, session: str) -> None:
        self.held.pop(session, None)

    def close(self) -> None:
        self.held.clear()
        self.closed = True

    @property
    def ready(self) -> bool:
        return any(held.segment is not None for held in self.held.values())

    @property
    def wake_fd(self) -> int | None:
        return None

    def step(self) -> Sequence[Generated]:
        out = []
        for session, held in list(self.held.items()):
            if held.segment is not None:
                out.append(self._advance(session, held, held.segment))
        self._check()
        return out

    def _advance(self, session: str, held: Held, segment: Segment) -> Generated:
        if session in self.failing:
            self.failing.discard(session)
            del self.held[session]
            return Generated(session, finish=Finish.FAILED, detail="told to")
        if held.interrupted:
            held.segment = None
            if held.last is not None and self.cut == "anywhere":
                # A runner may have fed what it sampled last by then.
                held.kv += states([Tokens((held.last,))], held.kv[-1])
            return Generated(session, finish=Finish.INTERRUPTED, cached=len(held.kv))
        first = len(held.kv)
        if held.waiting:
            held.kv += held.waiting
            held.waiting = []
        elif held.last is not None:
            held.kv += states([Tokens((held.last,))], held.kv[-1])
        rows = self._rows(held.kv[first:]) if segment.hidden == "all" \
            or (segment.hidden == "generated" and held.last is not None) else None
        if segment.sampling is None:
            held.segment = None
            return Generated(session, first_row=first, rows=rows, finish=Finish.STOP, cached=len(held.kv))
        token = choose(held.kv[-1], segment.sampling, held.made, self.capacity.vocabulary)
        held.last, held.made = token, held.made + 1
        finish = Finish.STOP if token in segment.sampling.stop \
            else Finish.LENGTH if held.made == segment.sampling.max_tokens else None
        if finish is not None:
            held.segment = None
        return Generated(session, (token,), first, rows, finish, len(held.kv))

    def _rows(self, kv: list[int]) -> Rows:
        return np.array([[state % 1000] * self.capacity.hidden_size for state in kv], np.float32)

    def _check(self) -> None:
        """A runner trusts its caller with its capacity; this one does not."""
        lengths = [len(held.kv) + len(held.waiting) for held in self.held.values()]
        blocks = sum(-(-length // self.capacity.block) for length in lengths)
        assert blocks <= self.capacity.positions // self.capacity.block, "the KV overflows"
        assert all(length <= self.capacity.max_length for length in lengths), "a session is past its limit"
        assert len(lengths) <= self.capacity.max_sessions, "more sessions than slots"
        self.peak_blocks = max(self.peak_blocks, blocks)
