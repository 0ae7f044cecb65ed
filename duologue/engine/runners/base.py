"""The one interface behind which every runner lives: what executes an autoregressive model for many sessions.

A session is a sequence of positions, each a token or an embedding row. A runner holds the KV of a beginning of it,
and that is a cache: whoever submits a segment says how much of it still counts (``keep``), what follows it, and how
to go on from there. An interruption, a slide of the window, a move to another replica are all a smaller ``keep`` and
more to prefill.

A runner samples a segment's last token and does not feed it: its KV is only computed when a later segment brings the
token back. ``Generated.cached`` says where that segment starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]
"""Embedding rows or hidden states, shape (n, hidden_size)."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Positions given as token ids."""

    ids: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Embeddings:
    """Positions given as rows of the model's input embedding space, float32 (n, hidden_size).

    ``key`` is a hash of the content: pieces with the same key are the same, for a prefix cache too.
    """

    rows: Rows
    key: bytes

    def __len__(self) -> int:
        return len(self.rows)


Piece = Tokens | Embeddings


@dataclass(frozen=True, slots=True)
class Swap:
    """Where ``chosen`` is chosen ``into`` takes its place, unless right behind the token ``but_after``.

    The segment's first token is only swapped ``at_first``. What was swapped in counts as ``chosen`` for a repetition
    penalty.
    """

    chosen: int
    into: int
    but_after: int
    at_first: bool


@dataclass(frozen=True, slots=True)
class Copy:
    """Behind a token of ``opens`` comes a piece of one of ``texts``: words that follow each other there, one at least.

    A text is its words, a word the tokens it consists of. Behind a word any of ``closes`` may come, and ends the piece.
    """

    opens: tuple[int, ...]
    closes: tuple[int, ...]
    texts: tuple[tuple[tuple[int, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one segment's tokens are chosen; the segment ends with a token of ``stop`` or the ``max_tokens``-th.

    ``forbidden`` are never chosen. If ``first`` is not empty the first token is one of these. Where ``copy`` has begun
    only what it allows is chosen, of which no other rule may take any away. ``bias`` adds to logits, before the
    temperature; ``damp`` divides a logit above 0 by its factor and multiplies one below.
    ``at_budget`` is the token forced as the ``max_tokens``-th. Temperature 0 is greedy, and only then do all runners
    choose the same.

    ``tried`` is a token that is chosen only if it is drawn from the logits as the model gives them, at temperature 1
    (greedy: if its logit is the largest of all), and otherwise not at all. ``at_once`` is a token and a number k: it
    is chosen without a draw where fewer than k logits are above its own, all but the temperature applied. ``swap`` is
    the last rule: it changes what was chosen.

    ``repetition_penalty`` covers the last ``repetition_window`` tokens, or all for 0, of ``recent`` and the segment's
    own after it. ``repetition`` is how: ``once`` is CTRL's (arXiv 1909.05858), each token that occurs counts once;
    with ``often`` its power is how often the token occurs; ``divide`` divides any logit, those below 0 as well
    (what MiniCPM-o 4.5's talker and thinker were released with).
    """

    max_tokens: int
    stop: frozenset[int] = frozenset()
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    repetition: Literal["once", "often", "divide"] = "once"
    repetition_window: int = 0
    recent: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()
    first: tuple[int, ...] = ()
    copy: Copy | None = None
    bias: tuple[tuple[int, float], ...] = ()
    damp: tuple[tuple[int, float], ...] = ()
    tried: int | None = None
    at_once: tuple[int, int] | None = None
    swap: Swap | None = None
    at_budget: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Segment:
    """Cut the session's sequence to its first ``keep`` positions, add ``pieces``, then generate.

    Without ``sampling`` nothing is generated: the pieces are only prefilled, and at least one position is given.
    ``hidden`` asks for hidden states: of no position, of those of the tokens generated in this segment that were
    fed, or of every position computed in it. A session is opened by its first segment, with ``keep`` 0.
    """

    session: str
    keep: int
    pieces: tuple[Piece, ...]
    sampling: Sampling | None
    hidden: Literal["none", "generated", "all"] = "none"


class Finish(Enum):
    """Why a segment is over."""

    STOP = "stop"
    """A token of ``stop`` was chosen, or there was nothing to generate."""
    LENGTH = "length"
    """``max_tokens`` were chosen."""
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """The runner could not do it; the session holds nothing any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """What came of a segment since its last ``Generated``: deltas only.

    ``rows`` are hidden states of the positions from ``first_row`` on (absolute, in the session's sequence), as far
    as they were asked for. With ``finish`` the segment is over, and ``cached`` is how many positions of the
    session's sequence, ``pieces`` and fed tokens included, the KV holds now.
    """

    session: str
    tokens: tuple[int, ...] = ()
    first_row: int = 0
    rows: Rows | None = None
    finish: Finish | None = None
    cached: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a runner can hold.

    ``positions`` is the KV of all sessions together, handed out in blocks of ``block`` positions; ``max_length`` the
    longest single session; ``max_sessions`` how many may hold KV at once, whether they run or are parked.
    """

    positions: int
    block: int
    max_length: int
    max_sessions: int
    hidden_size: int
    vocabulary: int


class Runner(Protocol):
    """An autoregressive model and the KV of its sessions. One segment of a session at a time.

    Not thread-safe; whoever holds it calls ``step`` while ``ready``. It trusts its caller with ``capacity``: what
    would overflow it is kept away from it by ``runners.sessions``.
    """

    @property
    def capacity(self) -> Capacity:
        """What it can hold; constant."""

    def keepable(self, session: str, positions: int) -> int:
        """How many of the session's first ``positions`` a segment may ``keep``: at most that many, maybe none."""

    def submit(self, segment: Segment) -> None:
        """Take a segment; raises ``ValueError`` when the session has one already or ``keep`` is not keepable."""

    def interrupt(self, session: str) -> None:
        """Stop generating for the session: its segment finishes as ``INTERRUPTED`` with what it has; idempotent."""

    def drop(self, session: str) -> None:
        """Give back all the session holds, at once; nothing more is said of it. Idempotent."""

    def step(self) -> Sequence[Generated]:
        """Do one slice of work, batched over the sessions that have a segment; returns what came of it, in order."""

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do now."""

    @property
    def wake_fd(self) -> int | None:
        """A descriptor that becomes readable when ``ready`` turns true by itself; None when it never does."""

    def close(self) -> None:
        """Free everything; idempotent."""
