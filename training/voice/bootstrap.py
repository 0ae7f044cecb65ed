"""How sure a ratio of errors is, when both are counted on the same sentences."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

_DRAWS = 10_000
_TAIL = 5
"""Percent left out at either end: the interval holds 90 %."""


def ratio_interval(errors: ArrayLike, others: ArrayLike) -> tuple[float, float]:
    """Between what the ratio of the two sums lies in nine of ten draws of as many sentences, with replacement.

    Both are errors by sentence, shape (sentences,); a sentence is drawn for both at once (Bisani and Ney 2004,
    "Bootstrap estimates for confidence intervals in ASR performance evaluation"). Infinite where only the others have
    none.
    """
    pairs = np.stack([np.asarray(errors, float), np.asarray(others, float)])
    count = pairs.shape[1]
    drawn = np.random.default_rng(0).integers(count, size=(_DRAWS, count))
    sums = pairs[:, drawn].sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(sums[0] / sums[1], nan=1.0, posinf=np.inf)
    low, high = np.percentile(ratios, [_TAIL, 100 - _TAIL], method="nearest")
    return float(low), float(high)
