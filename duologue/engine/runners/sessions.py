"""Resumable sessions in front of any runner: the KV is a cache of each session's log.

Whatever happens to a session (a unit more, an interruption, a rollback, a slide of the window, an eviction, its being
put together again in another process) changes its log and nothing else. When it is to generate, the sequence it should
have is known from the log, the runner says how much of what it holds may be kept, and the rest is submitted. Budgets
are checked before anything is submitted, so that a session fails alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from duologue.engine.runners.base import Finish, Generated, Piece, Rows, Runner, Sampling, Segment, Tokens
from duologue.engine.runners.lease import Leases, TooLong
from duologue.engine.runners.log import Grammar, Log, joined
from duologue.engine.runners.window import Window, WindowConfig

Hidden = Literal["none", "generated", "all"]


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What came of a session's segment since its last output: deltas only.

    ``rows`` are hidden states, float32 (n, hidden_size), of the segment's tokens from number ``first_row`` on, counted
    from 0 at the first one that was generated (below 0: positions before it). With ``finish`` the segment is over; if
    that is ``FAILED`` so is the session, and ``detail`` says why.
    """

    session: str
    tokens: tuple[int, ...] = ()
    first_row: int = 0
    rows: Rows | None = None
    finish: Finish | None = None
    detail: str = ""


@dataclass(slots=True)
class _Asked:
    """A segment that was asked for, whether it waits or runs."""

    sampling: Sampling
    hidden: Hidden
    tokens: list[int]
    """Its answer so far, from the tokens it was given to begin with."""
    start: int = 0
    """Position of the first token that is generated."""
    running: bool = False


@dataclass(slots=True)
class _Session:
    log: Log
    cached: int = 0
    """Positions of the log's sequence, from its beginning, that the runner's KV holds."""
    asked: _Asked | None = None


class Sessions:
    """The sessions of one runner. Not thread-safe; whoever holds it calls ``step`` while ``ready``.

    A session takes one segment at a time; what would change its log meanwhile raises ``ValueError``. With ``window``
    sessions slide, without it one that outgrows the runner fails. Raises ``ValueError`` for a window that does not
    fit the runner.
    """

    def __init__(self, runner: Runner, grammar: Grammar, window: WindowConfig | None = None) -> None:
        self._runner = runner
        self._grammar = grammar
        self._leases = Leases(runner.capacity)
        self._window = Window(window, self._leases.longest) if window else None
        self._sessions: dict[str, _Session] = {}
        self._news: list[Output] = []

    # --- a session's log ------------------------------------------------------------------------------------

    def open(self, session: str, prefix: Sequence[Piece]) -> None:
        """Begin a session whose sequence always begins with ``prefix``."""
        if session in self._sessions:
            raise ValueError(f"session {session} is open already")
        # An earlier one of this name may have failed without its end having been told.
        self.close(session)
        self._sessions[session] = _Session(Log(prefix, self._grammar))

    def begin_with(self, session: str, prefix: Sequence[Piece]) -> None:
        """Put another prefix in front of the session's sequence, all of which is computed anew."""
        held = self._idle(session)
        held.cached = min(held.cached, held.log.begin_with(prefix))

    def append(self, session: str, pieces: Sequence[Piece]) -> int:
        """Add an entry; returns its number. Nothing is computed before the session generates."""
        return self._idle(session).log.append(pieces)

    def record(self, session: str, pieces: Sequence[Piece], tokens: Sequence[int], room: int) -> int:
        """Add an entry with the answer it had when it was generated within ``room`` tokens; returns its number."""
        held = self._idle(session)
        number = held.log.append(pieces)
        self._slide(held, room)
        held.log.answer(tokens)
        return number

    def revise(self, session: str, number: int, tokens: Sequence[int]) -> None:
        """Change the answer of entry ``number``."""
        held = self._idle(session)
        held.cached = min(held.cached, held.log.revise(number, tokens))

    def mark(self, session: str) -> int:
        """The end of the session's sequence, to roll back to: the number of its next entry."""
        return self._sessions[session].log.next

    def rollback(self, session: str, mark: int) -> None:
        """Take away every entry since ``mark``."""
        held = self._idle(session)
        held.cached = min(held.cached, held.log.rollback(mark))

    def forget(self, session: str, before: int) -> None:
        """Let every entry before number ``before`` slide out of the window."""
        held = self._idle(session)
        count = before - held.log.first
        if count > 0:
            held.cached = min(held.cached, held.log.forget(count, self._window.text if self._window else 0))

    def sequence(self, session: str) -> tuple[Piece, ...]:
        """The session's whole sequence."""
        return self._sessions[session].log.pieces()

    # --- work -----------------------------------------------------------------------------------------------

    def generate(self, session: str, sampling: Sampling, hidden: Hidden = "none", begun: Sequence[int] = ()) -> None:
        """Ask for the answer to the session's last entry. Its first tokens are ``begun``, if they are known.

        A session that would grow too long fails with the next ``step``.
        """
        held = self._idle(session)
        room = len(begun) + sampling.max_tokens
        self._slide(held, room)
        try:
            self._leases.ask(session, held.log.length + room)
        except TooLong as error:
            self._fail(session, str(error))
            return
        held.asked = _Asked(sampling, hidden, list(begun))

    def interrupt(self, session: str) -> None:
        """Stop the session's segment: it ends as ``INTERRUPTED`` with what it has, and the session can go on.

        Nothing happens when there is none.
        """
        held = self._sessions[session]
        if held.asked is None:
            return
        if held.asked.running:
            self._runner.interrupt(session)
        elif self._leases.cancel(session):
            self._news.append(Output(session, finish=Finish.INTERRUPTED))

    def close(self, session: str) -> None:
        """Give back all the session holds; nothing more is said of it. Idempotent."""
        self._news = [output for output in self._news if output.session != session]
        if self._sessions.pop(session, None) is not None:
            self._leases.forget(session)
            self._runner.drop(session)

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do now."""
        return bool(self._news) or self._leases.can_start or self._runner.ready

    def step(self) -> Sequence[Output]:
        """Start the segments there is room for and let the runner do a slice of work; returns what came of it."""
        while (grant := self._leases.next()) is not None:
            for each in grant.evict:
                self._runner.drop(each)
                self._sessions[each].cached = 0
            self._submit(grant.session)
        outputs, self._news = self._news, []
        for output in outputs:
            if output.finish is Finish.INTERRUPTED:
                self._answered(self._sessions[output.session])
        if self._runner.ready:
            outputs += [self._take(generated) for generated in self._runner.step()]
        return outputs

    def busy(self, session: str) -> bool:
        """Whether the session has a segment that is not over."""
        return self._sessions[session].asked is not None

    def why_waiting(self, session: str) -> str:
        """Say why the session's segment has not started; empty when it runs or there is none."""
        return self._leases.why_waiting(session)

    @property
    def longest(self) -> int:
        """Positions a session may take."""
        return self._window.high if self._window else self._leases.longest

    # --- inside ---------------------------------------------------------------------------------------------

    def _idle(self, session: str) -> _Session:
        held = self._sessions[session]
        if held.asked is not None:
            raise ValueError(f"session {session} has a segment that is not over")
        return held

    def _slide(self, held: _Session, room: int) -> None:
        if self._window is None:
            return
        log = held.log
        room += len(self._grammar.tail)
        if log.length + room <= self._window.high:
            return
        frame = sum(map(len, self._grammar.memory))
        slide = self._window.slide(log.prefix, frame, log.remembered, log.entries, room)
        if slide is not None:
            held.cached = min(held.cached, log.forget(slide.drop, slide.text))

    def _submit(self, session: str) -> None:
        held = self._sessions[session]
        asked = held.asked
        assert asked is not None
        asked.start = held.log.length + len(asked.tokens)
        keep = self._keep(session, held, asked.start - 1)
        pieces = joined((*held.log.pieces(keep), Tokens(tuple(asked.tokens)))) if asked.tokens \
            else held.log.pieces(keep)
        try:
            self._runner.submit(Segment(session, keep, pieces, asked.sampling, asked.hidden))
        except ValueError as error:
            self._fail(session, f"the runner does not take it: {error}")
            return
        asked.running = True

    def _keep(self, session: str, held: _Session, most: int) -> int:
        """How much of the runner's KV to keep: what both the runner and the log can be cut at.

        The last position is always given again, since the next token comes of it.
        """
        keep = min(held.cached, most)
        while keep:
            allowed = held.log.cuttable(self._runner.keepable(session, keep))
            if allowed == keep:
                break
            keep = allowed
        return keep

    def _take(self, generated: Generated) -> Output:
        session = generated.session
        held = self._sessions[session]
        asked = held.asked
        assert asked is not None
        asked.tokens += generated.tokens
        if generated.finish is not None:
            if generated.finish is Finish.FAILED:
                del self._sessions[session]
                self._leases.forget(session)
            else:
                self._answered(held)
                # What the runner has fed beyond the log's sequence is none of it.
                held.cached = min(generated.cached, held.log.length - len(self._grammar.tail))
                self._leases.park(session, generated.cached)
        return Output(session, generated.tokens, generated.first_row - asked.start, generated.rows, generated.finish,
                      generated.detail)

    @staticmethod
    def _answered(held: _Session) -> None:
        assert held.asked is not None
        held.log.answer(held.asked.tokens)
        held.asked = None

    def _fail(self, session: str, detail: str) -> None:
        del self._sessions[session]
        self._leases.forget(session)
        self._runner.drop(session)
        self._news.append(Output(session, finish=Finish.FAILED, detail=detail))
