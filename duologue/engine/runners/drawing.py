"""Draws of tokens from logits: by a number that depends on a seed and a place, nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from duologue.engine.runners.base import Sampling
from duologue.engine.runners.rules import uniform

_FEW = 64
"""Up to this ``top_k`` only so many logits are put in order: a vocabulary has 150,000, and putting all of them in
order for a batch costs a GPU more than the layers of a small model."""


def draw(logits: torch.Tensor, samplings: Sequence[Sampling], places: Sequence[int]) -> torch.Tensor:
    """Draw token ``places[i]`` of a segment from each row (rows, vocabulary), float32; int64 (rows,).

    By temperature, ``top_k`` and ``top_p``. A row's draw does not depend on the others.
    """
    chosen = torch.empty(len(samplings), dtype=torch.int64, device=logits.device)
    vocabulary = logits.shape[1]
    few = [0 < sampling.top_k <= _FEW < vocabulary for sampling in samplings]
    for small in (True, False):
        rows = [i for i, each in enumerate(few) if each is small]
        if rows:
            ordered = order(logits[rows], _FEW if small else vocabulary)
            chosen[rows] = _among(*ordered, [samplings[i] for i in rows], [places[i] for i in rows])
    return chosen


def order(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the ``count`` largest logits of each row with their ids; between equal ones the smaller id comes first."""
    if count == logits.shape[1]:
        scores, ids = logits.sort(descending=True, stable=True)
        return scores, ids
    # As integers, floats of the same sign have the order of their bits. The id makes each different.
    bits = (logits + 0.0).view(torch.int32)
    keys = (bits ^ (bits >> 31 & 0x7FFFFFFF)).long() << 32
    ids = (keys - torch.arange(logits.shape[1], device=logits.device)).topk(count, dim=-1).indices
    return logits.gather(1, ids), ids


def _among(scores: torch.Tensor, ids: torch.Tensor, samplings: Sequence[Sampling],
           places: Sequence[int]) -> torch.Tensor:
    count = scores.shape[1]

    def column(values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=scores.device).unsqueeze(1)

    rank = torch.arange(count, device=scores.device)
    scores = (scores.double() / column([s.temperature for s in samplings])).masked_fill(
        rank >= column([s.top_k or count for s in samplings]), -torch.inf)
    share = scores.softmax(dim=-1)
    kept = share.masked_fill(share.cumsum(dim=-1) - share >= column([s.top_p for s in samplings]), 0)
    total = kept.cumsum(dim=-1)
    numbers = column([uniform(s.seed, place) for s, place in zip(samplings, places, strict=True)])
    place = torch.searchsorted(total, numbers * total[:, -1:], right=True)
    last = (kept > 0).sum(dim=-1, keepdim=True) - 1
    return ids.gather(1, torch.minimum(place, last)).squeeze(1)
