"""The encoder's classes: the pieces of which the words that callers say are made, and blank."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.hearing.shape import BLANK
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary

_SAID = re.compile(r"(##)?[a-z'-]+")
"""Callers' words are lower case."""
_INNER = "##"


class Pieces:
    """``names`` are the pieces from class 1 on. Raises ``ConfigError`` for one that is not of the vocabulary."""

    def __init__(self, names: Iterable[str], vocabulary: Vocabulary) -> None:
        self.names = tuple(names)
        self._vocabulary = vocabulary
        for name in self.names:
            if name not in vocabulary:
                raise ConfigError(f"the encoder hears {name!r}, which the thinker's vocabulary does not have: train it "
                                  "with this tokenizer.json (python -m training.hearing)")
        self.ids: NDArray[np.int64] = np.array([vocabulary[name] for name in self.names])
        """The thinker's tokens, by class less 1."""
        self._classes = {id: place for place, id in enumerate(self.ids.tolist(), BLANK + 1)}

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Pieces:
        """All pieces of words that ``vocabulary`` has."""
        names = (vocabulary.name(id) for id in range(len(vocabulary)))
        return cls((name for name in names if _SAID.fullmatch(name)), vocabulary)

    def __len__(self) -> int:
        """Classes, blank included."""
        return len(self.names) + 1

    def classes(self, word: str) -> tuple[int, ...]:
        """The classes of a word's pieces."""
        return tuple(self._classes[id] for id in self._vocabulary.encode(word))

    def begins(self, number: int) -> bool:
        """Whether piece ``number`` is the first of a word."""
        return not self.names[number - 1].startswith(_INNER)

    def text(self, numbers: Iterable[int]) -> str:
        """The word made of pieces."""
        return "".join(self.names[number - 1].removeprefix(_INNER) for number in numbers)
