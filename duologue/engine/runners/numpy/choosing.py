"""The rules of ``Sampling`` over one row of logits; their order is said in ``runners.sampling``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from duologue.engine.runners.base import Sampling
from duologue.engine.runners.numpy.kv import Floats
from duologue.engine.runners.rules import TRIAL, held, multiplied, penalties, swapped, uniform

Ids = NDArray[np.intp]


class Chooser:
    """Chooses a segment's tokens; what its rules name is made into arrays once."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        tried = () if sampling.tried is None else (sampling.tried,)
        self._out = np.array([*sampling.forbidden, *tried], np.intp)
        self._bias = _cells(sampling.bias)
        self._damp = _cells(multiplied(sampling.damp))

    def choose(self, logits: Floats, said: Sequence[int]) -> int:
        """Choose from ``logits`` (vocabulary,), which stay as they are, the token after those ``said`` in the segment.

        As ``runners.sampling.choose`` does; drawn ones too, but where rounding decides.
        """
        return swapped(self._choice(logits, said), self._sampling, said)

    def _choice(self, logits: Floats, said: Sequence[int]) -> int:
        rules = self._sampling
        if rules.at_budget is not None and len(said) == rules.max_tokens - 1:
            return rules.at_budget
        only = held(rules, said)
        if rules.tried is not None and (not only or rules.tried in only) and self._drawn(logits, rules.tried, said):
            return rules.tried
        left = self._constrained(logits, said, only)
        if rules.at_once is not None:
            token, most = rules.at_once
            if np.isfinite(left[token]) and np.count_nonzero(left > left[token]) < most:
                return token
        if rules.temperature == 0:
            return int(left.argmax())
        return _draw(left, rules, len(said))

    def _drawn(self, logits: Floats, tried: int, said: Sequence[int]) -> bool:
        """Say whether ``tried`` is what the logits as they are give."""
        if self._sampling.temperature == 0:
            return int(logits.argmax()) == tried
        largest = logits.max()
        share = np.exp(logits[tried] - largest) / np.exp(logits - largest).sum()
        return bool(uniform(self._sampling.seed, len(said), TRIAL) < share)

    def _constrained(self, logits: Floats, said: Sequence[int], only: tuple[int, ...]) -> Floats:
        """Apply the repetition penalty and the rules behind it, as far as they hold of single logits."""
        left = logits.copy()
        penal = penalties(self._sampling, said)
        if penal:
            ids, factors = _cells(penal)
            if self._sampling.repetition == "divide":
                left[ids] /= factors
            else:
                _shrink(left, ids, factors)
        if self._sampling.bias:
            np.add.at(left, *self._bias)
        if self._sampling.damp:
            _shrink(left, *self._damp)
        left[self._out] = -np.inf
        if only:
            named = np.array(only)
            kept = left[named]
            left.fill(-np.inf)
            left[named] = kept
        return left


def _cells(values: Sequence[tuple[int, float]]) -> tuple[Ids, Floats]:
    return np.array([id for id, _ in values], np.intp), np.array([value for _, value in values], np.float32)


def _shrink(left: Floats, ids: Ids, factors: Floats) -> None:
    """Divide what is above 0 and multiply what is below, each once."""
    old = left[ids]
    left[ids] = np.where(old > 0, old / factors, old * factors)


def _draw(left: Floats, rules: Sampling, place: int) -> int:
    """Draw by temperature, ``top_k`` and ``top_p``; between equal logits the smaller id comes first."""
    count = min(rules.top_k or len(left), len(left))
    ids = np.flatnonzero(left >= np.partition(left, -count)[-count])
    ids = ids[np.argsort(-left[ids], kind="stable")][:count]
    scores = left[ids].astype(np.float64) / rules.temperature
    share = np.exp(scores - scores[0])
    share /= share.sum()
    share[np.cumsum(share) - share >= rules.top_p] = 0
    total = np.cumsum(share)
    drawn = int(np.searchsorted(total, uniform(rules.seed, place) * total[-1], side="right"))
    return int(ids[min(drawn, int(np.count_nonzero(share)) - 1)])
