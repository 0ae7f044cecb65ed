"""How far two sequences are apart."""

from __future__ import annotations

from collections.abc import Sequence


def distance(got: Sequence[str], wanted: Sequence[str]) -> int:
    """The least number of insertions, deletions and substitutions between them (Levenshtein)."""
    row = list(range(len(wanted) + 1))
    for i, item in enumerate(got):
        corner, row[0] = row[0], i + 1
        for j, other in enumerate(wanted):
            corner, row[j + 1] = row[j + 1], min(row[j] + 1, row[j + 1] + 1, corner + (item != other))
    return row[-1]
