"""The loop of a runner that computes in ``step`` itself: schedule, forward, choose, tell.

A kind of runner brings its KV and the arithmetic; what they all promise (``Runner``) is kept here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from pydantic import Field

from duologue.engine.config import ConfigError
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Capacity, Finish, Generated, Piece, Rows, Segment
from duologue.engine.runners.fault import fault
from duologue.engine.runners.progress import Progress
from duologue.engine.runners.schedule import share
from duologue.strict import Strict


class SteppedOptions(Strict):
    """What the runner may take of the machine."""

    positions: int = Field(default=16_384, gt=0)
    """KV positions of all sessions together."""
    block: int = Field(default=16, gt=0)
    """Positions of one block of KV."""
    max_length: int = Field(default=4096, gt=0)
    """Positions of one session."""
    max_sessions: int = Field(default=16, gt=0)
    """Sessions that may hold KV at once."""
    prefill_chunk: int = Field(default=128, gt=0)
    """Positions prefilled in one step, of all sessions together: what a long prefill costs the others' next token."""


class Kv(Protocol):
    """The KV of all sessions."""

    @property
    def sessions(self) -> Collection[str]:
        """Who holds anything."""

    def length(self, session: str) -> int:
        """Count the session's positions."""

    def grow(self, session: str, count: int) -> range | None:
        """Add ``count`` positions and give them; None, and nothing is changed, when there are no blocks for them."""

    def truncate(self, session: str, length: int) -> None:
        """Keep the session's first ``length`` positions and give back the blocks of the rest."""

    def drop(self, session: str) -> None:
        """Give back all."""

    def scrub(self, session: str) -> None:
        """Drop a session so that none of its numbers, which may not be finite, is ever read again."""


Cache = TypeVar("Cache", bound=Kv)
States = TypeVar("States")
"""Hidden states of a step's rows, as the kind of runner has them."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one step computes of a session: ``pieces`` at ``positions``, in the batch from row ``first`` on."""

    progress: Progress
    pieces: list[Piece]
    positions: range
    first: int

    @property
    def session(self) -> str:
        """Whose it is."""
        return self.progress.segment.session

    @property
    def rows(self) -> slice:
        """The batch's rows that are this session's."""
        return slice(self.first, self.first + len(self.positions))


class SteppedRunner(ABC, Generic[Cache, States]):
    """A ``Runner`` but for its arithmetic; raises ``ConfigError`` when ``options`` do not fit the model."""

    def __init__(self, config: DecoderConfig, options: SteppedOptions, kv: Cache) -> None:
        if options.max_length > config.max_position_embeddings:
            raise ConfigError(f"max_length is {options.max_length}, but the model goes up to "
                              f"{config.max_position_embeddings}")
        self._capacity = Capacity(options.positions // options.block * options.block, options.block,
                                  options.max_length, options.max_sessions, config.hidden_size, config.vocab_size)
        self._prefill_chunk = options.prefill_chunk
        self._kv = kv
        self._live: dict[str, Progress] = {}
        self._told: list[Generated] = []

    # --- the contract ---

    @property
    def capacity(self) -> Capacity:
        """See ``Runner``."""
        return self._capacity

    def keepable(self, session: str, positions: int) -> int:
        """See ``Runner``."""
        return min(positions, self._kv.length(session))

    def submit(self, segment: Segment) -> None:
        """See ``Runner``. What the model cannot take fails the session, at once and alone."""
        session, keep = segment.session, segment.keep
        if session in self._live:
            raise ValueError(f"session {session} has a segment already")
        if not 0 <= keep <= self._kv.length(session):
            raise ValueError(f"session {session} cannot keep {keep} of {self._kv.length(session)} positions")
        detail = fault(segment, self._capacity.vocabulary, self._capacity.hidden_size, self._capacity.max_length)
        if detail is None and session not in self._kv.sessions \
                and len({*self._kv.sessions, *self._live}) >= self._capacity.max_sessions:
            detail = f"{self._capacity.max_sessions} sessions hold KV already"
        if detail is not None:
            self._kv.drop(session)
            self._told.append(Generated(session, finish=Finish.FAILED, detail=detail))
            return
        self._kv.truncate(session, keep)
        self._live[session] = Progress(segment)

    def interrupt(self, session: str) -> None:
        """See ``Runner``."""
        if self._live.pop(session, None) is not None:
            self._told.append(Generated(session, finish=Finish.INTERRUPTED, cached=self._kv.length(session)))

    def drop(self, session: str) -> None:
        """See ``Runner``."""
        self._live.pop(session, None)
        self._kv.drop(session)
        self._told = [told for told in self._told if told.session != session]

    @property
    def ready(self) -> bool:
        """See ``Runner``."""
        return bool(self._live or self._told)

    @property
    def wake_fd(self) -> None:
        """See ``Runner``; it works only in ``step``."""
        return

    def close(self) -> None:
        """See ``Runner``."""
        for session in {*self._live, *self._kv.sessions}:
            self.drop(session)
        self._told.clear()

    # --- the loop ---

    def step(self) -> Sequence[Generated]:
        """See ``Runner``."""
        works = self._schedule()
        if works:
            states = self._forward(works)
            works = self._whole(works, states)
            choosing = [work for work in works if work.progress.may_choose]
            tokens = self._choose(choosing, states) if choosing else []
            chosen = dict(zip((work.session for work in choosing), tokens, strict=True))
            for work in works:
                self._tell(work, chosen.get(work.session), states)
        told, self._told = self._told, []
        return told

    def _schedule(self) -> list[Work]:
        """One position of every session that generates, and a bounded chunk of the others' prefills."""
        generating = [progress for progress in self._live.values() if progress.tokens]
        prefilling = [progress for progress in self._live.values() if not progress.tokens]
        parts = share([progress.waiting for progress in prefilling], self._prefill_chunk)
        works: list[Work] = []
        rows = 0
        for progress, count in [*((progress, 1) for progress in generating), *zip(prefilling, parts, strict=True)]:
            positions = self._kv.grow(progress.segment.session, count)
            if positions is None:
                self._fail(progress.segment.session, f"the KV has no room for {count} more positions")
                continue
            works.append(Work(progress, progress.take(count), positions, rows))
            rows += count
        return works

    def _whole(self, works: Sequence[Work], states: States) -> list[Work]:
        """Fail the sessions whose numbers are not finite; give the others' works."""
        finite = self._finite(states)
        broken = [work for work in works if not all(finite[work.rows])]
        for work in broken:
            self._fail(work.session, "the model's numbers are not finite")
        return [work for work in works if work not in broken]

    def _tell(self, work: Work, token: int | None, states: States) -> None:
        """Note what came of a session's work, and say it."""
        progress, wanted = work.progress, work.progress.segment.hidden
        start = work.positions.start if wanted == "all" else max(work.positions.start, progress.prefill_end)
        rows: Rows | None = None
        if wanted != "none" and start < work.positions.stop:
            rows = self._rows(states, slice(work.rows.start + start - work.positions.start, work.rows.stop))
        finish = progress.chose(token) if token is not None else progress.prefilled()
        if finish is not None:
            del self._live[work.session]
        if token is not None or rows is not None or finish is not None:
            self._told.append(Generated(
                work.session, () if token is None else (token,), 0 if rows is None else start, rows, finish,
                self._kv.length(work.session) if finish is not None else 0))

    def _fail(self, session: str, detail: str) -> None:
        del self._live[session]
        self._kv.scrub(session)
        self._told.append(Generated(session, finish=Finish.FAILED, detail=detail))

    # --- the arithmetic ---

    @abstractmethod
    def _forward(self, works: Sequence[Work]) -> States:
        """Compute the hidden states of all rows of ``works``, whose positions are in the KV already."""

    @abstractmethod
    def _finite(self, states: States) -> Sequence[bool]:
        """Say of each row whether its numbers are finite."""

    @abstractmethod
    def _choose(self, works: Sequence[Work], states: States) -> Sequence[int]:
        """Choose the token behind each of ``works``, which are at least one."""

    @abstractmethod
    def _rows(self, states: States, rows: slice) -> Rows:
        """Copy hidden states out."""
