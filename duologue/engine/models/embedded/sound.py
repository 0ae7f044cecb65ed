"""How a word sounded, for a thinker that reads rows as well as tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from duologue.engine.runners.base import Embeddings, Rows

_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class Sound:
    """Rows of the thinker's input embeddings, float32 (n, hidden_size), in place of a word's tokens.

    Two with the same ``key``, a hash of the rows, are the same.
    """

    key: bytes
    rows: Rows = field(compare=False, repr=False)

    @classmethod
    def of(cls, rows: Rows) -> Sound:
        """The sound that ``rows`` are."""
        return cls(blake2b(rows.tobytes(), digest_size=_KEY_BYTES).digest(), rows)

    @property
    def piece(self) -> Embeddings:
        """Its place in a sequence."""
        return Embeddings(self.rows, self.key)


Sounds = tuple[Sound | None, ...]
"""Of some words, of each the sound or None where it is known as text only; empty where all of them are."""


def joined(*parts: tuple[int, Sounds]) -> Sounds:
    """The sounds of words one after another: of each part how many words it has, and their sounds."""
    if not any(sounds for _, sounds in parts):
        return ()
    return tuple(sound for count, sounds in parts for sound in sounds or (None,) * count)
