"""From written words, as they come, to what the talker reads: phones, boundaries with marks, ends of sentences."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from duologue.engine.models.embedded.speakable import MARKS, Break, Word
from duologue.engine.models.embedded.voice import spoken
from duologue.engine.models.embedded.voice.pronouncer import Pronouncer, is_clitic
from duologue.engine.models.embedded.voice.symbols import BOUNDARY, ID, is_vowel

_LONG, _LONGEST = 18, 26
"""Words after which a sentence ends at its next clause, and after which it ends anywhere: the longest the talker
learnt from has 25."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """One word as it is said; a written one ("10:30") may be several."""

    written: Word
    symbols: tuple[int, ...]
    """Phones and boundary."""
    begins: bool
    """Whether it is its written word's first."""
    ends: bool
    """Whether it is its written word's last."""
    closes: bool
    """Whether the sentence ends with it."""


@dataclass(frozen=True, slots=True)
class _Name:
    """A spoken word whose sounds are not settled yet."""

    text: str
    written: Word
    mark: str
    begins: bool
    ends: bool
    closes: bool


class Sentences:
    """Takes words and gives them out spoken, each as soon as nothing that may come can change it.

    A word's pause may still grow by a dash behind it, and "the" sounds otherwise before a vowel; so there is a look
    ahead of one word, or of none at a full stop.
    """

    def __init__(self, pronouncer: Pronouncer) -> None:
        self._pronouncer = pronouncer
        self._last: Word | None = None
        """The last word, whose pause may still grow."""
        self._last_names: tuple[str, ...] = ()
        self._names: deque[_Name] = deque()
        self._before: tuple[str, ...] = ()
        """Phones of the word before, in the sentence."""
        self._length = 0
        """Spoken words of the sentence so far."""
        self._spoken: deque[SpokenWord] = deque()
        self._finished = False

    def push(self, words: Iterable[Word]) -> None:
        """Add words; one with nothing to say only lends its pause to the word before it."""
        for word in words:
            names = tuple(name for token in word.tokens for name in spoken.words(token.name))
            if names:
                self._release()
                self._last, self._last_names = word, names
                if word.pause is Break.SENTENCE:
                    self._release()
            elif self._last and word.pause > self._last.pause:
                self._last = replace(self._last, pause=word.pause)
        self._settle()

    def finish(self) -> None:
        """Say that no more words come."""
        if self._last:
            self._last = replace(self._last, pause=Break.SENTENCE)
        self._release()
        self._finished = True
        self._settle()

    @property
    def ready(self) -> bool:
        """Whether ``next`` may be called: a word is known and, unless a sentence ends with it, the one after it."""
        return bool(self._spoken) and (self._spoken[0].closes or len(self._spoken) > 1)

    @property
    def done(self) -> bool:
        """Whether all has been given out."""
        return self._finished and not self._spoken

    def next(self) -> tuple[SpokenWord, SpokenWord | None]:
        """The next word, and the one after it in its sentence."""
        word = self._spoken.popleft()
        return word, None if word.closes else self._spoken[0]

    def _release(self) -> None:
        word, self._last = self._last, None
        if word is None:
            return
        for i, name in enumerate(self._last_names):
            ends = i == len(self._last_names) - 1
            self._length += 1
            closes = ends and word.pause is Break.SENTENCE
            mark = MARKS[word.pause] if ends else ""
            if not closes and (self._length >= _LONGEST or (mark and self._length >= _LONG)):
                closes, mark = True, ","
            if closes:
                self._length = 0
            self._names.append(_Name(name, word, mark, i == 0, ends, closes))

    def _settle(self) -> None:
        """Give out every name whose sounds are certain."""
        while self._names:
            name = self._names[0]
            if name.text == "the" and not name.closes and len(self._names) == 1:
                return
            self._names.popleft()
            phones = self._phones(name)
            symbols = (*(ID[phone] for phone in phones), ID[BOUNDARY + name.mark])
            self._spoken.append(SpokenWord(name.written, symbols, name.begins, name.ends, name.closes))
            self._before = () if name.closes else phones

    def _phones(self, name: _Name) -> tuple[str, ...]:
        if is_clitic(name.text):
            return self._pronouncer.clitic(name.text, self._before)
        phones = self._alone(name)
        if name.text == "the" and not name.closes and is_vowel(self._alone(self._names[0])[0]):
            return (*phones[:-1], "iy0")
        return phones

    def _alone(self, name: _Name) -> tuple[str, ...]:
        """Phones of a word whatever is around it."""
        return self._pronouncer.phones("A" if name.text == "a" and name.mark else name.text)
