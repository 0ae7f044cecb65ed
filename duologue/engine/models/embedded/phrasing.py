"""Which words to say next, and with which neighbours in view."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate, islice

from duologue.engine.models.embedded.speakable import MARKS, Break, Word

_FIRST_WORDS = 4
"""Words in the first phrase of a reply where no mark ends it: few, so that sound begins early."""
_WORDS = 8
_SPILL = 2
"""Words by which any but the first phrase may be longer if it then ends at a mark."""
_MIN_WORDS = 3
"""Words of an unfinished clause that are worth saying before the rest is known."""
_BEFORE = 3
_AFTER = 2
_CHARS = 80
"""Characters in one phrase; a digit counts as four, since it becomes a word."""
_AROUND_CHARS = 30
"""The same, for the words before it and for those after it."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words to say, and those around them that shape their melody and rhythm but are not said now."""

    before: tuple[Word, ...]
    words: tuple[Word, ...]
    after: tuple[Word, ...]
    final: bool
    """Whether the reply ends here."""


class Phraser:
    """Takes words as they come and gives phrases as soon as they can be said.

    A phrase ends at a mark where there is one within reach, else after some words, provided that at least one
    more is known: a word before a pause is said otherwise than one in the flow.
    """

    def __init__(self) -> None:
        self._said: deque[Word] = deque(maxlen=_BEFORE)
        self._queue: deque[Word] = deque()
        self._begun = False
        self._finished = False

    def push(self, words: Iterable[Word]) -> None:
        """Add words; one with nothing to say only lends its pause to the word before it."""
        for word in words:
            if word.tokens:
                self._queue.append(word)
            elif self._queue and word.pause > self._queue[-1].pause:
                self._queue[-1] = _with_pause(self._queue[-1], word.pause)

    def finish(self) -> None:
        """Say that no more words come."""
        self._finished = True

    @property
    def ready(self) -> bool:
        """Whether ``next`` would give a phrase."""
        return self._length() > 0

    @property
    def done(self) -> bool:
        """Whether all has been said."""
        return self._finished and not self._queue

    def next(self) -> Phrase | None:
        """The next phrase, or None if it must wait for more text."""
        length = self._length()
        if not length:
            return None
        words = tuple(self._queue.popleft() for _ in range(length))
        ended = words[-1].pause is Break.SENTENCE
        after = () if ended else _near(islice(self._queue, _AFTER))
        phrase = Phrase(_near(reversed(self._said))[::-1], words, after, self.done)
        for word in words:
            self._said.append(word)
            if word.pause is Break.SENTENCE:
                self._said.clear()
        self._begun = True
        return phrase

    def _length(self) -> int:
        """Words in the next phrase; 0: none yet."""
        limit, spill = (_WORDS, _SPILL) if self._begun else (_FIRST_WORDS, 0)
        chars, fit, marked = 0, 0, 0
        for word in islice(self._queue, limit + spill):
            chars += _chars(word)
            if fit and chars > _CHARS:
                break
            fit += 1
            if word.pause is not Break.NONE:
                marked = fit
            if word.pause is Break.SENTENCE:
                break
        if marked:
            return marked
        if self._finished and fit == len(self._queue):
            return fit
        known = len(self._queue) if self._finished else len(self._queue) - 1
        length = min(fit, limit, known)
        return length if length >= _MIN_WORDS or fit < len(self._queue) else 0


def _chars(word: Word) -> int:
    return sum(len(token.name) + 3 * sum(map(str.isdigit, token.name)) for token in word.tokens)


def _near(words: Iterable[Word]) -> tuple[Word, ...]:
    """Words as long as they stay short together, the nearest first."""
    sizes = accumulate(map(_chars, words := tuple(words)))
    return tuple(word for word, size in zip(words, sizes, strict=True) if size <= _AROUND_CHARS)


def _with_pause(word: Word, pause: Break) -> Word:
    last = replace(word.tokens[-1], punctuation=MARKS[pause])
    return replace(word, pause=pause, tokens=(*word.tokens[:-1], last))
