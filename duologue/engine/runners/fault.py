"""What no runner can take in a segment. It is looked for in front: kernels do not look, and take everybody down."""

from __future__ import annotations

import numpy as np

from duologue.engine.runners.base import Segment, Tokens
from duologue.engine.runners.rules import check


def fault(segment: Segment, vocabulary: int, hidden_size: int, max_length: int) -> str | None:
    """Say what a model with these sizes cannot take in ``segment``; None when it can."""
    positions = sum(len(piece) for piece in segment.pieces)
    if not positions:
        return "the segment has no position to compute"
    for piece in segment.pieces:
        if isinstance(piece, Tokens):
            for id in piece.ids:
                if not 0 <= id < vocabulary:
                    return f"token {id} is given, but the vocabulary has {vocabulary}"
        elif piece.rows.ndim != 2 or piece.rows.shape[1] != hidden_size:
            return f"embeddings are {list(piece.rows.shape)}, must be [n, {hidden_size}]"
        elif not np.isfinite(piece.rows).all():
            return "embeddings have values that are not finite"
    end = segment.keep + positions
    if segment.sampling is not None:
        try:
            check(segment.sampling, vocabulary)
        except ValueError as error:
            return str(error)
        end += segment.sampling.max_tokens - 1
    if end > max_length:
        return f"the session may come to {end} positions, but the longest is {max_length}"
    return None
