"""The own runner's parts: the KV pool, the share of a step, attention in two forms, the graphs' buckets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duologue.engine.runners.base import Tokens
from duologue.engine.runners.progress import Progress
from duologue.engine.runners.schedule import share
from duologue.engine.runners.stepped import Work
from duologue.engine.runners.torch.batch import Batch
from duologue.engine.runners.torch.decoder import Decoder
from duologue.engine.runners.torch.graphs import DecodeGraphs
from duologue.engine.runners.torch.kv import SCRATCH, KvPool
from tests.engine.runners.torch_reference import embeddings, segment, small, tokens

CPU = torch.device("cpu")

# --- the share of a step ---


@given(st.lists(st.integers(1, 600), max_size=20), st.integers(1, 300))
def test_a_step_is_shared_fairly_and_used_up(waiting: list[int], budget: int) -> None:
    parts = share(waiting, budget)
    assert all(1 <= part <= wanted for part, wanted in zip(parts, waiting, strict=True))
    assert sum(parts) <= max(budget, len(waiting))
    if len(waiting) <= budget:
        assert sum(parts) == min(budget, sum(waiting))
    # Max-min: whoever did not get all has at least as much as anybody, but for what does not divide.
    held_back = [part for part, wanted in zip(parts, waiting, strict=True) if part < wanted]
    assert all(part >= max(parts) - 1 for part in held_back)


# --- the pool ---


class PoolMachine(RuleBasedStateMachine):
    """Blocks are handed out once, and all come back."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = KvPool(1, 1, 2, positions=40, block=4, device=CPU, dtype=torch.float32)
        self.lengths: dict[str, int] = {}

    sessions = st.sampled_from("abcd")

    @rule(session=sessions, count=st.integers(1, 15))
    def grow(self, session: str, count: int) -> None:
        length = self.lengths.get(session, 0)
        blocks = sum(-(-held // 4) for held in self.lengths.values())
        lacking = -(-(length + count) // 4) + -(-length // 4) * -1
        positions = self.pool.grow(session, count)
        if blocks + lacking > 10:
            assert positions is None
        else:
            assert positions == range(length, length + count)
            self.lengths[session] = length + count

    @rule(session=sessions, length=st.integers(0, 30))
    def truncate(self, session: str, length: int) -> None:
        self.pool.truncate(session, length)
        self.lengths[session] = min(self.lengths.get(session, 0), length)

    @rule(session=sessions)
    def drop(self, session: str) -> None:
        self.pool.drop(session)
        self.lengths[session] = 0

    @invariant()
    def the_books_agree(self) -> None:
        held = {session: length for session, length in self.lengths.items() if length}
        assert {session: self.pool.length(session) for session in self.pool.sessions} == held
        blocks = [block for session in held for block in self.pool.blocks(session)]
        assert len(blocks) == len(set(blocks)) == sum(-(-length // 4) for length in held.values())
        assert SCRATCH not in blocks
        assert self.pool.free == 40 - 4 * len(blocks)
        slots = [slot for session, length in held.items() for slot in self.pool.slots(session, range(length))]
        assert len(slots) == len(set(slots))
        assert all(slot // 4 in blocks for slot in slots)
        for session in held:
            everywhere = torch.arange(11)
            assert everywhere[self.pool.where(session)].tolist() == self.pool.blocks(session)


TestPool = PoolMachine.TestCase
TestPool.settings = settings(max_examples=60, deadline=None)


def test_sessions_that_grow_in_turns_lie_side_by_side_while_there_is_room() -> None:
    pool = KvPool(1, 1, 2, positions=96 * 4, block=4, device=CPU, dtype=torch.float32)
    for _ in range(8):
        for session in "abcd":
            assert pool.grow(session, 5) is not None
    assert all(isinstance(pool.where(session), slice) for session in "abcd")
    assert pool.grow("e", 60) is not None
    while pool.free:
        pool.grow("a", 1)
    assert isinstance(pool.where("a"), torch.Tensor)
    pool.truncate("a", 40)
    assert isinstance(pool.where("a"), slice)


def test_what_is_scrubbed_leaves_no_number_behind() -> None:
    pool = KvPool(2, 1, 2, positions=16, block=4, device=CPU, dtype=torch.float32)
    pool.grow("a", 4)
    pool.grow("b", 4)
    for session, value in (("a", torch.nan), ("b", 1.0)):
        pool.keys[:, pool.blocks(session)] = value
        pool.values[:, pool.blocks(session)] = value
    pool.scrub("a")
    assert pool.keys.isfinite().all()
    assert pool.values.isfinite().all()
    assert (pool.keys[:, pool.blocks("b")] == 1).all()
    assert pool.length("a") == 0


# --- attention in two forms, and the graphs ---


class Bench:
    """Several sessions with KV, each about to compute one more token."""

    def __init__(self, lengths: list[int], pool: int = 400) -> None:
        config, tensors = small()
        self.config = config
        self.decoder = Decoder(config, tensors.items(), config.max_position_embeddings, CPU, torch.float32)
        self.kv = KvPool(config.num_hidden_layers, config.num_key_value_heads, config.head_dim, pool, 4, CPU,
                         torch.float32)
        for i, length in enumerate(lengths):
            self.forward(self.batch([self.work(str(i), [tokens(length, i, config.vocab_size)])]), pad=False)

    def work(self, session: str, pieces: list[Tokens], first: int = 0) -> Work:
        count = sum(len(piece) for piece in pieces)
        positions = self.kv.grow(session, count)
        assert positions is not None
        return Work(Progress(segment(session, 0, pieces, 5)), [*pieces], positions, first)

    def batch(self, works: list[Work]) -> Batch:
        return Batch(works, self.kv, CPU)

    def forward(self, batch: Batch, *, pad: bool) -> torch.Tensor:
        return self.decoder.forward(batch.inputs(self.decoder), batch.positions, batch.attention(pad=pad))


LENGTHS = [3, 50, 4, 17, 8]


@torch.inference_mode()
def test_attention_together_is_attention_one_by_one() -> None:
    bench = Bench(LENGTHS)
    works = [bench.work(str(i), [Tokens((i,))], i) for i in range(len(LENGTHS))]
    works.append(bench.work("new", [tokens(9, 1, 40)], len(LENGTHS)))
    alone = torch.cat([bench.forward(bench.batch([Work(work.progress, work.pieces, work.positions, 0)]), pad=False)
                       for work in works])
    for pad in (False, True):
        batch = bench.batch(works)
        assert not batch.generates_only
        torch.testing.assert_close(bench.forward(batch, pad=pad), alone, atol=1e-5, rtol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_graph_computes_what_the_batch_does(count: int) -> None:
    """On a CPU nothing is captured; what a graph would do again is done again."""
    bench = Bench(LENGTHS)
    captured: list[Callable[[], None]] = []

    def capture(run: Callable[[], None]) -> Callable[[], None]:
        captured.append(run)
        return run

    graphs = DecodeGraphs(bench.decoder, bench.kv, 5, 512, capture)
    # 1, 2, 4 and 5 sessions; no session is longer than 512.
    assert len(captured) == 4
    for _ in range(3):
        works = [bench.work(str(i), [Tokens((i,))], i) for i in range(count)]
        batch = bench.batch(works)
        assert batch.generates_only
        expected = bench.forward(batch, pad=False)
        before = bench.kv.keys.clone()
        torch.testing.assert_close(graphs.forward(batch), expected, atol=1e-5, rtol=1e-4)
        changed = (bench.kv.keys - before).abs().amax(dim=(0, 2, 3, 4)) > 1e-4
        assert not changed[1:].any(), "only the scratch block takes what pads a batch"

@torch.inference_mode()
def test_what_a_graphs_last_batch_left_harms_nobody() -> None:
    bench = Bench(LENGTHS)
    graphs = DecodeGraphs(bench.decoder, bench.kv, 5, 512, lambda run: run)
    graphs.forward(bench.batch([bench.work(session, [Tokens((1,))], i) for i, session in enumerate("1234")]))
    gone = [block for session in "124" for block in bench.kv.blocks(session)]
    bench.kv.keys[:, gone] = torch.nan
    bench.kv.values[:, gone] = torch.nan
    bench.forward(bench.batch([bench.work("new", [Tokens((7, 8))])]), pad=False)
    batch = bench.batch([bench.work(session, [Tokens((2,))], i) for i, session in enumerate(["0", "3", "new"])])
    expected = bench.forward(batch, pad=False)
    torch.testing.assert_close(graphs.forward(batch), expected, atol=1e-5, rtol=1e-4)
    assert bench.kv.keys[:, gone].isnan().all()


def test_there_is_a_graph_for_every_batch() -> None:
    bench = Bench([])
    sizes: list[int] = []

    def capture(run: Callable[[], None]) -> Callable[[], None]:
        return lambda: sizes.append(1)

    graphs = DecodeGraphs(bench.decoder, bench.kv, 3, 512, capture)
    works = [bench.work("a", [Tokens((1,))], 0), bench.work("b", [Tokens((1,))], 1), bench.work("c", [Tokens((1,))], 2)]
    for count in (1, 2, 3):
        assert graphs.forward(bench.batch(works[:count])).shape == (count, 24)
    assert len(sizes) == 3


def test_a_batch_with_embeddings_does_not_only_generate() -> None:
    bench = Bench([])
    positions = bench.kv.grow("a", 1)
    assert positions is not None
    piece = embeddings(1, 1, width=24)
    batch = bench.batch([Work(Progress(segment("a", 0, [piece], None)), [piece], positions, 0)])
    assert not batch.generates_only
    assert torch.equal(batch.inputs(bench.decoder), torch.from_numpy(piece.rows))
