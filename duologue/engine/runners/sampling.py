"""The rules of ``Sampling`` over logits. Every runner chooses by them, or hands what ``constrain`` leaves to its own.

In this order:

1. ``at_budget``, where the token is the ``max_tokens``-th: it is the only one left, whatever the other rules say.
2. ``tried`` is drawn from the logits as they are (temperature 0: it is the largest of them): it is the only one left,
   otherwise it is taken out. Where rule 7 holds and does not name it, it is taken out without being tried.
3. ``repetition_penalty`` for the tokens of ``recent`` and of the segment: a positive logit is divided by it, a negative
   one multiplied (arXiv 1909.05858); by its power for one that occurs ``often``; always divided with ``divide``.
4. ``bias`` is added.
5. ``damp``: a positive logit is divided, a negative one multiplied.
6. ``forbidden`` are taken out.
7. ``first``, where the token is the segment's first, and what ``copy`` allows, where it has begun: all others are
   taken out.
8. ``at_once``: where its logit is among so many largest of what is left, it is the only one left.
9. ``temperature`` 0 takes the largest logit; otherwise logits are divided by it, and
10. ``top_k`` keeps that many of the largest (0: all),
11. ``top_p`` keeps the fewest of the most probable of these that have that much probability together, at least one,
12. and one of these is drawn by a number that depends on ``seed`` and the token's place in the segment, nothing else.
13. ``swap`` puts another in the place of what was chosen, also where one rule left only that.

Between equal logits the smaller id comes first, everywhere. All rows are done together, in a number of operations that
does not depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch

from duologue.engine.runners.base import Sampling
from duologue.engine.runners.drawing import draw
from duologue.engine.runners.rules import TRIAL, held, multiplied, penalties, swapped, uniform

Cell = tuple[int, int]
"""A row and a token."""


def choose(logits: torch.Tensor, samplings: Sequence[Sampling], said: Sequence[Sequence[int]]) -> list[int]:
    """Choose from each row of ``logits`` (rows, vocabulary) the token after those ``said`` in its segment.

    A row's choice does not depend on the others. The logits stay as they are.
    """
    left = constrain(logits, samplings, said)
    chosen = left.argmax(dim=-1)
    drawn = [i for i, sampling in enumerate(samplings) if sampling.temperature > 0]
    if drawn:
        chosen[drawn] = draw(left[drawn], [samplings[i] for i in drawn], [len(said[i]) for i in drawn])
    return [swapped(token, sampling, tokens)
            for token, sampling, tokens in zip(chosen.tolist(), samplings, said, strict=True)]


def constrain(logits: torch.Tensor, samplings: Sequence[Sampling], said: Sequence[Sequence[int]]) -> torch.Tensor:
    """Apply rules 1 to 8 to ``logits`` (rows, vocabulary); float32, -inf is never chosen. The argument stays."""
    given = logits.float()
    left = logits.to(torch.float32, copy=True)
    rows = list(enumerate(zip(samplings, said, strict=True)))
    budget = [(i, s.at_budget) for i, (s, tokens) in rows
              if s.at_budget is not None and len(tokens) == s.max_tokens - 1]
    only = [(i, ids) for i, (s, tokens) in rows if (ids := held(s, tokens))]
    tried = [(i, s.tried) for i, (s, _) in rows if s.tried is not None]
    _repetition(left, samplings, said)
    _add(left, [((i, id), amount) for i, s in enumerate(samplings) for id, amount in s.bias])
    _shrink(left, [((i, id), factor) for i, s in enumerate(samplings) if s.damp for id, factor in multiplied(s.damp)])
    _take_out(left, samplings, tried)
    _only(left, only)
    once = [(i, *s.at_once) for i, s in enumerate(samplings) if s.at_once is not None]
    if once:
        cells = [(i, id) for i, id, _ in once]
        own = left[_cells(cells, left.device)]
        above = (left[[i for i, _ in cells]] > own.unsqueeze(1)).sum(dim=1)
        most = torch.tensor([most for *_, most in once], device=left.device)
        _only_where(left, left, cells, own.isfinite() & (above < most))
    named = dict(only)
    trials = [(i, id) for i, id in tried if i not in named or id in named[i]]
    if trials:
        _only_where(left, given, trials, _drawn(given, trials, samplings, said))
    if budget:
        _only_where(left, given, budget, torch.ones(len(budget), dtype=torch.bool, device=left.device))
    return left


def _repetition(left: torch.Tensor, samplings: Sequence[Sampling], said: Sequence[Sequence[int]]) -> None:
    shrink: list[tuple[Cell, float]] = []
    divide: list[tuple[Cell, float]] = []
    for i, (sampling, tokens) in enumerate(zip(samplings, said, strict=True)):
        (divide if sampling.repetition == "divide" else shrink).extend(
            ((i, id), factor) for id, factor in penalties(sampling, tokens))
    _shrink(left, shrink)
    if divide:
        at = _cells([cell for cell, _ in divide], left.device)
        left[at] = left[at] / _column(divide, left.device)


def _drawn(given: torch.Tensor, trials: Sequence[Cell], samplings: Sequence[Sampling],
           said: Sequence[Sequence[int]]) -> torch.Tensor:
    """Say of each tried token whether it is drawn from the logits as they are, bool (trials,)."""
    rows = [i for i, _ in trials]
    own, all_of_row = given[_cells(trials, given.device)], given[rows]
    largest = all_of_row.argmax(dim=-1) == torch.tensor([id for _, id in trials], device=given.device)
    greedy = torch.tensor([samplings[i].temperature == 0 for i in rows], device=given.device)
    share = (own - all_of_row.logsumexp(dim=-1)).exp().double()
    numbers = [0.0 if samplings[i].temperature == 0 else uniform(samplings[i].seed, len(said[i]), TRIAL) for i in rows]
    return torch.where(greedy, largest, torch.tensor(numbers, dtype=torch.float64, device=given.device) < share)


# --- logits by cells ----------------------------------------------------------------------------------------


def _add(left: torch.Tensor, amounts: Sequence[tuple[Cell, float]]) -> None:
    if amounts:
        left.index_put_(_cells([cell for cell, _ in amounts], left.device), _column(amounts, left.device),
                        accumulate=True)


def _shrink(left: torch.Tensor, factors: Sequence[tuple[Cell, float]]) -> None:
    """Divide what is above 0 and multiply what is below, each cell at most once."""
    if not factors:
        return
    at, factor = _cells([cell for cell, _ in factors], left.device), _column(factors, left.device)
    old = left[at]
    left[at] = torch.where(old > 0, old / factor, old * factor)


def _take_out(left: torch.Tensor, samplings: Sequence[Sampling], more: Sequence[Cell]) -> None:
    rows: dict[int, list[int]] = {}
    for i, sampling in enumerate(samplings):
        if sampling.forbidden:
            rows.setdefault(id(sampling.forbidden), []).append(i)
    for same in rows.values():
        index = _index(samplings[same[0]].forbidden, left.device)
        left[torch.tensor(same, device=left.device).unsqueeze(1), index] = -torch.inf
    if more:
        left[_cells(more, left.device)] = -torch.inf


def _only(left: torch.Tensor, only: Sequence[tuple[int, tuple[int, ...]]]) -> None:
    """Take out of each row all but these."""
    if not only:
        return
    at = _cells([(i, id) for i, ids in only for id in ids], left.device)
    kept = left[at]
    left[[i for i, _ in only]] = -torch.inf
    left[at] = kept


def _only_where(left: torch.Tensor, values: torch.Tensor, cells: Sequence[Cell], holds: torch.Tensor) -> None:
    """Where ``holds`` leave of the row nothing but the cell, as it is in ``values``."""
    at = _cells(cells, left.device)
    rows = [i for i, _ in cells]
    own = torch.where(holds, values[at], left[at])
    left[rows] = left[rows].masked_fill(holds.unsqueeze(1), -torch.inf)
    left[at] = own


def _cells(cells: Sequence[Cell], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    rows, ids = torch.tensor(cells, device=device).unbind(dim=1)
    return rows, ids


def _column(values: Sequence[tuple[Cell, float]], device: torch.device) -> torch.Tensor:
    return torch.tensor([value for _, value in values], dtype=torch.float32, device=device)


@lru_cache(maxsize=64)
def _index(ids: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Ids as a tensor, kept: ``forbidden`` has thousands, and is the same in every segment."""
    return torch.tensor(ids, device=device)
