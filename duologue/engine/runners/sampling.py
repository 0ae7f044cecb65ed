"""The rules of ``Sampling`` over logits. Every runner chooses by them, or hands what ``constrain`` leaves to its own.

In this order:

1. ``at_budget``, where the token is the ``max_tokens``-th: it is the only one left, whatever the other rules say.
2. ``repetition_penalty`` for the distinct tokens of the segment and of ``recent``: a positive logit is divided by it,
   a negative one multiplied (arXiv 1909.05858).
3. ``bias`` is added.
4. ``forbidden`` are taken out.
5. ``first``, where the token is the segment's first: all others are taken out.
6. ``temperature`` 0 takes the largest logit; otherwise logits are divided by it, and
7. ``top_k`` keeps that many of the largest (0: all),
8. ``top_p`` keeps the fewest of the most probable of these that have that much probability together, at least one,
9. and one of these is drawn by a number that depends on ``seed`` and the token's place in the segment, nothing else.

Between equal logits the smaller id comes first, everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from duologue.engine.runners.base import Sampling


def check(sampling: Sampling, vocabulary: int) -> None:
    """Raise ``ValueError`` with what is wrong when ``sampling`` cannot be followed over ids below ``vocabulary``."""
    if sampling.max_tokens < 1:
        raise ValueError(f"max_tokens is {sampling.max_tokens}, must be at least 1")
    if not sampling.temperature >= 0 or not 0 < sampling.top_p <= 1 or sampling.top_k < 0:
        raise ValueError("temperature and top_k must be at least 0, top_p above 0 and at most 1")
    if not sampling.repetition_penalty > 0:
        raise ValueError("repetition_penalty must be above 0")
    named = {"stop": sampling.stop, "recent": sampling.recent, "forbidden": sampling.forbidden,
             "first": sampling.first, "bias": [id for id, _ in sampling.bias],
             "at_budget": [] if sampling.at_budget is None else [sampling.at_budget]}
    for name, ids in named.items():
        for id in ids:
            if not 0 <= id < vocabulary:
                raise ValueError(f"{name} names token {id}, but the vocabulary has {vocabulary}")
    forbidden = set(sampling.forbidden)
    if len(forbidden) == vocabulary or (sampling.first and forbidden.issuperset(sampling.first)):
        raise ValueError("forbidden leaves no token to choose")


def constrain(logits: torch.Tensor, sampling: Sampling, tokens: Sequence[int]) -> torch.Tensor:
    """Apply rules 1 to 5 to ``logits`` (vocabulary,) after ``tokens`` of the segment; float32, -inf is never chosen.

    The argument stays as it is.
    """
    device = logits.device
    logits = logits.to(torch.float32, copy=True)
    if sampling.at_budget is not None and len(tokens) == sampling.max_tokens - 1:
        return _only(logits, (sampling.at_budget,))
    seen = {*tokens, *sampling.recent}
    if sampling.repetition_penalty != 1.0 and seen:
        index = torch.tensor(sorted(seen), device=device)
        old = logits[index]
        logits[index] = torch.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
    if sampling.bias:
        ids, amounts = zip(*sampling.bias, strict=True)
        logits.index_add_(0, _index(ids, device), torch.tensor(amounts, dtype=torch.float32, device=device))
    if sampling.forbidden:
        logits.index_fill_(0, _index(sampling.forbidden, device), -torch.inf)
    if sampling.first and not tokens:
        return _only(logits, sampling.first)
    return logits


def choose(logits: torch.Tensor, samplings: Sequence[Sampling], places: Sequence[int]) -> list[int]:
    """Apply rules 6 to 9 to constrained ``logits`` (rows, vocabulary); row i chooses token ``places[i]`` of a segment.

    A row's choice does not depend on the others.
    """
    chosen = logits.argmax(dim=-1)
    drawn = [i for i, sampling in enumerate(samplings) if sampling.temperature > 0]
    if drawn:
        chosen[drawn] = _draw(logits[drawn], [samplings[i] for i in drawn], [places[i] for i in drawn])
    return [int(token) for token in chosen.tolist()]


def _draw(logits: torch.Tensor, samplings: Sequence[Sampling], places: Sequence[int]) -> torch.Tensor:
    def column(values: Sequence[float]) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=logits.device).unsqueeze(1)

    vocabulary = logits.shape[1]
    scores, ids = (logits.double() / column([s.temperature for s in samplings])).sort(descending=True, stable=True)
    rank = torch.arange(vocabulary, device=logits.device)
    scores = scores.masked_fill(rank >= column([s.top_k or vocabulary for s in samplings]), -torch.inf)
    share = scores.softmax(dim=-1)
    kept = share.masked_fill(share.cumsum(dim=-1) - share >= column([s.top_p for s in samplings]), 0)
    total = kept.cumsum(dim=-1)
    numbers = column([_uniform(s.seed, place) for s, place in zip(samplings, places, strict=True)])
    place = torch.searchsorted(total, numbers * total[:, -1:], right=True)
    last = (kept > 0).sum(dim=-1, keepdim=True) - 1
    return ids.gather(1, torch.minimum(place, last)).squeeze(1)


def _uniform(seed: int, place: int) -> float:
    """Give the number in [0, 1) that chooses token ``place`` of a segment with ``seed`` (Philox: by counter)."""
    return float(np.random.Generator(np.random.Philox(key=seed % 2**64, counter=place)).random())


def _only(logits: torch.Tensor, ids: tuple[int, ...]) -> torch.Tensor:
    index = _index(ids, logits.device)
    left = logits[index]
    return logits.fill_(-torch.inf).index_copy_(0, index, left)


@lru_cache(maxsize=64)
def _index(ids: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Ids as a tensor, kept: ``forbidden`` has thousands, and is the same in every segment."""
    return torch.tensor(ids, device=device)
