"""How far a segment is."""

from __future__ import annotations

from collections import deque

from duologue.engine.runners.base import Embeddings, Finish, Piece, Sampling, Segment, Tokens


class Progress:
    """A segment's pieces that wait to be computed, and the tokens chosen in it. A chosen token waits like a piece."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.tokens: list[int] = []
        self.prefill_end = segment.keep + sum(len(piece) for piece in segment.pieces)
        """The first position of the session's sequence that is generated."""
        self.waiting = self.prefill_end - segment.keep
        """Positions to compute before the next token can be chosen."""
        self._pieces = deque(segment.pieces)

    def take(self, count: int) -> list[Piece]:
        """Take the next ``count`` positions out."""
        self.waiting -= count
        taken: list[Piece] = []
        while count:
            piece = self._pieces.popleft()
            if len(piece) > count:
                self._pieces.appendleft(_cut(piece, count, len(piece)))
                piece = _cut(piece, 0, count)
            taken.append(piece)
            count -= len(piece)
        return taken

    @property
    def sampling(self) -> Sampling:
        """The rules of a segment that generates."""
        assert self.segment.sampling is not None
        return self.segment.sampling

    @property
    def may_choose(self) -> bool:
        """Whether the next token is to be chosen now."""
        return not self.waiting and self.segment.sampling is not None

    def prefilled(self) -> Finish | None:
        """Say whether the segment is over though no token was chosen."""
        return Finish.STOP if not self.waiting and self.segment.sampling is None else None

    def chose(self, token: int) -> Finish | None:
        """Note a chosen token; says whether the segment is over, else the token waits to be computed."""
        self.tokens.append(token)
        if token in self.sampling.stop:
            return Finish.STOP
        if len(self.tokens) == self.sampling.max_tokens:
            return Finish.LENGTH
        self._pieces.append(Tokens((token,)))
        self.waiting += 1
        return None


def _cut(piece: Piece, start: int, stop: int) -> Piece:
    if isinstance(piece, Tokens):
        return Tokens(piece.ids[start:stop])
    return Embeddings(piece.rows[start:stop], piece.key)
