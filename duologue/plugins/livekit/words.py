"""A reply's text, in step with its sound: what LiveKit Agents is given of it is what was heard of it.

The framework takes for heard what it had been given when a reply was cut, less what its own guess at the speaking rate
holds back. The text is written far ahead of the voice; the server says where in the sound each word is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

HEARD = 0.75
"""The part of a word that has to be played for the word to count as heard: the server's own rule."""

UNPLACED_MS = 3000.0
"""A reply of which so much was played while the server placed no word of it is one whose words it cannot place: a word
is placed when the sound that ends it has been made, well before that is played."""


class Piece(NamedTuple):
    """Text that is due, and the seconds of playing in which it is spoken, as far as is known."""

    text: str
    start_s: float | None = None
    end_s: float | None = None


class Words:
    """Text, places and playing in; text that is due out. Pure."""

    def __init__(self) -> None:
        self._text = ""
        self._given = 0
        self._places: list[Mapping[str, int]] = []
        """Words that are not given yet: ``start``, ``end``, ``start_ms``, ``end_ms``."""
        self._placed = False
        self._played_ms: float | None = None
        self._delay_s = 0.0
        """What pauses have added to the time of playing."""
        self._over = False

    def write(self, delta: str) -> None:
        """The reply goes on with this text."""
        self._text += delta

    def place(self, words: Iterable[Mapping[str, int]]) -> None:
        """Where further words are in its sound."""
        self._places.extend(words)
        self._placed = True

    def begin(self) -> None:
        """Its sound is asked for, so somebody will hear it."""
        self._played_ms = 0.0

    def play(self, to_s: float, since_s: float) -> None:
        """So much of its sound was handed on, in so many seconds."""
        self._played_ms = to_s * 1000
        self._delay_s = max(0.0, since_s - to_s)

    def end(self) -> None:
        """There is no more to hear, or nobody hears it: the rest is text only."""
        self._over = True

    def due(self) -> list[Piece]:
        """Take what is due by now."""
        pieces: list[Piece] = []
        while self._places and self._played_ms is not None and self._heard(self._places[0]):
            word = self._places.pop(0)
            to = min(self._places[0]["start"] if self._places else word["end"], len(self._text))
            if to > self._given:
                pieces.append(Piece(self._take(to), word["start_ms"] / 1000 + self._delay_s,
                                    word["end_ms"] / 1000 + self._delay_s))
        if self._over or (not self._placed and (self._played_ms or 0) >= UNPLACED_MS):
            rest = self._take(len(self._text))
            if rest:
                pieces.append(Piece(rest))
        return pieces

    def _heard(self, word: Mapping[str, int]) -> bool:
        assert self._played_ms is not None
        return (self._played_ms >= word["start_ms"] + HEARD * (word["end_ms"] - word["start_ms"])
                and len(self._text) >= word["end"])

    def _take(self, to: int) -> str:
        piece, self._given = self._text[self._given:to], max(self._given, to)
        return piece
