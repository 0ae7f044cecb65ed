"""One step's work as one batch: all sessions' positions, prefilled and generated, as the rows of one forward."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import torch

from duologue.engine.runners.base import Rows, Tokens
from duologue.engine.runners.stepped import Work
from duologue.engine.runners.torch.attention import Attention, Padded, Span
from duologue.engine.runners.torch.decoder import Decoder
from duologue.engine.runners.torch.kv import KvPool


class Batch:
    """The tensors of a step; ``works`` are in the order of their rows, and their positions are in ``kv`` already."""

    def __init__(self, works: Sequence[Work], kv: KvPool, device: torch.device) -> None:
        self._works = works
        self._kv = kv
        self._device = device
        self._given: list[tuple[int, Rows]] = []
        ids: list[int] = []
        for piece in (piece for work in works for piece in work.pieces):
            if isinstance(piece, Tokens):
                ids += piece.ids
            else:
                self._given.append((len(ids), piece.rows))
                ids += [0] * len(piece)
        self.ids = torch.tensor(ids, device=device)
        self.positions = torch.tensor([p for work in works for p in work.positions], device=device)
        self.slots = torch.tensor([slot for work in works for slot in kv.slots(work.session, work.positions)],
                                  device=device)

    @property
    def generates_only(self) -> bool:
        """Whether it is one token of each session."""
        return not self._given and len(self._works) == len(self.ids)

    def inputs(self, decoder: Decoder) -> torch.Tensor:
        """Input rows (rows, hidden_size): the embeddings of the tokens, and what was given as embeddings."""
        rows = decoder.embed(self.ids)
        for first, given in self._given:
            rows[first:first + len(given)] = torch.from_numpy(given).to(self._device, rows.dtype)
        return rows

    def attention(self, *, pad: bool) -> Attention:
        """Say what each row attends to. With ``pad`` the single positions it begins with do so together.

        That takes few kernels, which counts on a GPU, and reads as much as the longest session for each, which counts
        on a CPU.
        """
        singles = len(list(takewhile(lambda work: len(work.positions) == 1, self._works))) if pad else 0
        spans = tuple(Span(work.rows, self._kv.where(work.session), work.positions.stop, self._device)
                      for work in self._works[singles:])
        return Attention(self._kv, self.slots, spans, self.padded(singles) if singles else None)

    def padded(self, singles: int) -> Padded:
        """Give the first ``singles`` works' blocks, padded to the longest."""
        blocks = [torch.tensor(self._kv.blocks(work.session), device=self._device) for work in self._works[:singles]]
        return Padded(torch.nn.utils.rnn.pad_sequence(blocks, batch_first=True),
                      self.positions[:singles] + 1)
