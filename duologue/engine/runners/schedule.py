"""How much of each prefill is done in one step."""

from __future__ import annotations

from collections.abc import Sequence


def share(waiting: Sequence[int], budget: int) -> list[int]:
    """Part ``budget`` positions among sessions with ``waiting`` to prefill: what one does not need goes to the others.

    Max-min fair, so a unit's few positions are prefilled at once beside a session that is rebuilt from its journal,
    and everyone gets at least one.
    """
    parts = [0] * len(waiting)
    for done, i in enumerate(sorted(range(len(waiting)), key=lambda i: waiting[i])):
        parts[i] = min(waiting[i], max(1, budget // (len(waiting) - done)))
        budget -= parts[i]
    return parts
