"""CUDA graphs of the step in which every session generates one token: its kernels are launched as one."""

from __future__ import annotations

from collections.abc import Callable

import torch

from duologue.engine.runners.torch.attention import Attention, Padded
from duologue.engine.runners.torch.batch import Batch
from duologue.engine.runners.torch.decoder import Decoder
from duologue.engine.runners.torch.kv import SCRATCH, KvPool

Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Records what a function does to tensors; what it returns does it again."""

_SHORTEST = 512
"""Positions of the shortest sessions that have a graph of their own: below it, attention costs next to nothing."""


class DecodeGraphs:
    """One graph for each pair of a number of sessions and a length, both growing by powers of two.

    A batch runs in the smallest that holds it; rows too many compute nobody's token in the pool's scratch block.
    All are captured here, so that no call waits for one.
    """

    def __init__(self, decoder: Decoder, kv: KvPool, max_sessions: int, max_length: int,
                 capture: Capture | None = None) -> None:
        device = kv.keys.device
        self._decoder = decoder
        self._kv = kv
        self._sizes = _doubling(1, max_sessions)
        self._widths = _doubling(-(-min(_SHORTEST, max_length) // kv.block), -(-max_length // kv.block))
        self._ids = torch.zeros(max_sessions, dtype=torch.int64, device=device)
        self._positions, self._slots = torch.zeros_like(self._ids), torch.zeros_like(self._ids)
        self._blocks = torch.zeros((max_sessions, self._widths[-1]), dtype=torch.int64, device=device)
        self._hidden = torch.zeros((max_sessions, decoder.config.hidden_size), dtype=kv.keys.dtype, device=device)
        capture = capture or _Cuda()
        # The largest first: the others then live in its memory.
        self._graphs = {(size, width): capture(self._pass(size, width))
                        for size in reversed(self._sizes) for width in reversed(self._widths)}

    def forward(self, batch: Batch) -> torch.Tensor:
        """Hidden states (rows, hidden_size) of a batch that only generates; valid until the next call."""
        count = len(batch.ids)
        blocks = batch.padded(count).blocks
        size = next(size for size in self._sizes if size >= count)
        width = next(width for width in self._widths if width >= blocks.shape[1])
        for fixed, given in ((self._ids, batch.ids), (self._positions, batch.positions), (self._slots, batch.slots)):
            fixed[:count] = given
            fixed[count:size] = 0
        self._blocks[:size, :width] = SCRATCH
        self._blocks[:count, :blocks.shape[1]] = blocks
        self._graphs[size, width]()
        return self._hidden[:count]

    def _pass(self, size: int, width: int) -> Callable[[], None]:
        def run() -> None:
            positions = self._positions[:size]
            attention = Attention(self._kv, self._slots[:size], (),
                                  Padded(self._blocks[:size, :width], positions + 1))
            rows = self._decoder.embed(self._ids[:size])
            self._hidden[:size] = self._decoder.forward(rows, positions, attention)

        return run


class _Cuda:
    """Captures in one memory pool, each after a run to warm up, on a stream of its own as CUDA wants it."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, run: Callable[[], None]) -> Callable[[], None]:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            run()
        return graph.replay


def _doubling(first: int, last: int) -> list[int]:
    """Give ``first``, its doubles below ``last``, and ``last``."""
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(min(2 * sizes[-1], last))
    return sizes
