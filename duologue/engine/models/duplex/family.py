"""What a model family brings to the thinker's sessions: how it hears, and how its units and answers are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from duologue.engine.messages import Pcm
from duologue.engine.models.duplex.floor import Rule
from duologue.engine.runners.base import Embeddings, Piece, Sampling
from duologue.engine.runners.log import Grammar


class Hearing(Protocol):
    """One session's stream of audio."""

    def hear(self, pcm: Pcm) -> Embeddings:
        """Hear the next unit; returns its rows."""


class Ear(Protocol):
    """What all streams share."""

    @property
    def hidden_size(self) -> int:
        """Of a row."""

    def hear(self, streams: Sequence[Any], units: Sequence[Pcm]) -> list[Embeddings]:
        """Hear the next unit of each of these streams of its own, as each would by itself; returns their rows."""

    def stream(self) -> Hearing:
        """Begin a session's stream."""


class Answer(Protocol):
    """The answer to a unit, as its tokens come."""

    @property
    def sampled(self) -> Sequence[int]:
        """All tokens so far."""

    @property
    def lead(self) -> tuple[int, ...]:
        """The tokens before its text."""

    @property
    def text(self) -> Sequence[int]:
        """What the talker is to be given: tokens of text, and those without a word that stand between them."""

    @property
    def places(self) -> Sequence[int]:
        """Of each of these which of the sampled ones it is."""

    @property
    def speaks(self) -> bool:
        """Whether it begins a reply, or goes on with the one that is open."""

    @property
    def ends(self) -> bool:
        """Whether the reply is over with it: it is whole, or the thinker said its text and then chose to listen."""

    @property
    def listens(self) -> bool:
        """Whether the thinker chose to listen: within a reply it gives up the floor."""

    @property
    def well_formed(self) -> tuple[int, ...]:
        """The answer as it stands in the sequence; it reads the same when it is taken again."""

    def take(self, sampled: Sequence[int]) -> None:
        """Take the next tokens; those after the answer's end are passed over."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A unit that is to be answered."""

    unit: int
    rule: Rule
    open: bool
    """Whether a reply is open."""
    recent: tuple[int, ...] = ()
    """Tokens that count for the repetition penalty."""
    begun: tuple[int, ...] = ()
    """What the answer begins with."""


class Format(Protocol):
    """A checkpoint's units, as pieces of a sequence, and the rules its answers are sampled by."""

    @property
    def grammar(self) -> Grammar:
        """What is around answers."""

    @property
    def unit_samples(self) -> int:
        """Samples of a unit at 16 kHz."""

    @property
    def rows(self) -> int:
        """Rows of audio in a unit."""

    @property
    def room(self) -> int:
        """Tokens an answer takes at most."""

    @property
    def force_listen(self) -> int:
        """Units at the start of a session in which the thinker only listens."""

    @property
    def recent(self) -> int:
        """Tokens that ``Ask.recent`` is to have at most."""

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of ``text``; what looks like a special token in it is text."""

    def prefix(self, instructions: str, voice: str) -> tuple[Piece, ...]:
        """How a session begins."""

    def block(self, role: str, text: Sequence[int]) -> tuple[Piece, ...]:
        """Text tokens between two units, said by ``role``."""

    def unit(self, rows: Embeddings) -> tuple[Piece, ...]:
        """A unit of the caller's audio; raises ``ValueError`` unless it is whole."""

    def answer(self, *, open: bool) -> Answer:
        """Begin to read an answer; ``open`` says that a reply is."""

    def begun(self, text: str, *, ends: bool) -> tuple[int, ...]:
        """The beginning of an answer of which ``text`` has been told already, and that the reply ``ends`` there."""

    def sampling(self, ask: Ask) -> Sampling:
        """How an answer is chosen."""

    def counted(self, answer: Sequence[int]) -> Sequence[int]:
        """Those of an answer's tokens that count for the repetition penalty."""

    def ended(self, lead: Sequence[int], text: Sequence[int]) -> tuple[int, ...]:
        """The answer that says ``text`` and ends its reply."""

    @property
    def pauses(self) -> bool:
        """Whether a unit of a reply without a word is told too, because it is a unit of the talker's."""

    @property
    def silent(self) -> tuple[int, ...]:
        """The answer of a unit in which nothing was said."""
