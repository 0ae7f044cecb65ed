"""What frames say, read as words: blank frames are dropped and repeated ones merged (Gaido et al. 2021, 2102.01578).

A word's pieces are learnt in frames that follow each other, so one that goes on with a word is believed only right
behind another piece: of 90 sentences 37 % of the words were wrong then, 42 % without (an encoder of 16 CPU minutes).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duologue.engine.models.embedded.hearing.features import STACK, Floats
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.shape import BLANK, DELAY
from duologue.engine.models.embedded.recogniser import Heard
from duologue.engine.models.embedded.sound import Sound
from duologue.engine.runners.base import Rows

SAID = 0.5
"""Probability of all pieces together from which a frame says one."""
_LONGEST = 60
"""Spectra before its end within which a word began: it may have come after a pause."""


@dataclass(frozen=True, slots=True)
class Spoken(Heard):
    """A word with its sound."""

    sound: Sound


@dataclass(slots=True)
class _Piece:
    number: int
    shares: Floats
    """Sum of the frames' probabilities, blank left out."""
    frame: int
    """The last one that said it."""


class Transcript:
    """One utterance's; ``table`` is the thinker's embeddings of the pieces, float32 (pieces, hidden_size)."""

    def __init__(self, pieces: Pieces, table: Rows) -> None:
        self._pieces = pieces
        self._table = table
        self._frames = 0
        self._said: list[_Piece] = []

    @property
    def frames(self) -> int:
        """Spectra read, 100 a second."""
        return self._frames * STACK

    def read(self, frames: Iterable[Floats]) -> None:
        """Take the probabilities (classes,) of the next frames."""
        for probabilities in frames:
            if 1 - probabilities[BLANK] > SAID:
                self._say(probabilities)
            self._frames += 1

    @property
    def words(self) -> tuple[Spoken, ...]:
        """The words so far; each but the last is final."""
        words: list[list[_Piece]] = []
        for piece in self._said:
            if self._pieces.begins(piece.number):
                words.append([])
            words[-1].append(piece)
        spoken: list[Spoken] = []
        for word in words:
            ended = spoken[-1].end if spoken else 0
            spoken.append(self._spoken(word, ended))
        return tuple(spoken)

    def _say(self, probabilities: Floats) -> None:
        shares = probabilities.copy()
        shares[BLANK] = 0
        number = int(shares.argmax())
        last = self._said[-1] if self._said and self._said[-1].frame == self._frames - 1 else None
        if last is not None and last.number == number:
            last.shares = last.shares + shares
            last.frame = self._frames
        elif last is not None or self._pieces.begins(number):
            self._said.append(_Piece(number, shares, self._frames))

    def _spoken(self, word: Sequence[_Piece], ended: int) -> Spoken:
        end = max(ended, (word[-1].frame + 1 - DELAY) * STACK)
        rows = np.concatenate([self._expected(piece.shares) for piece in word])
        text = self._pieces.text(piece.number for piece in word)
        return Spoken(text, max(ended, end - _LONGEST), end, Sound.of(rows))

    def _expected(self, shares: Floats) -> Rows:
        """The expectation of the thinker's embedding, (1, hidden_size)."""
        held = shares[BLANK + 1:]
        row: Rows = (held / held.sum())[None] @ self._table
        return row
