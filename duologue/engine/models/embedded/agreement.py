"""Whether what the two decoders heard agrees, and what may be trusted of it.

A grammar forces whatever it hears into one of its sentences, the free language model hears one word in seven
wrong. Where both heard nearly the same sounds the grammar's words are right; on speech that is none of the
dialogue's sentences they come out far apart. Measured with flite's voices (tests/engine/models/embedded has
such a set): 93 % of the dialogue's sentences lie below 0.36 and no other sentence below 0.42.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import Sentence, Trust
from duologue.engine.models.embedded.dialogue.templates import Parse, Reading
from duologue.engine.models.embedded.lexicon import FREE_PREFIX, Lexicon
from duologue.engine.models.embedded.recogniser import Heard, Words

AGREED = 0.36
"""Distance per phone up to which the grammar's words are trusted."""
_CAUGHT = 0.5
"""Share of the phones in words both decoders heard from which half of it counts as understood."""
_INCOMPLETE_COSTS = 0.05
"""By how much the beginning of a sentence must fit better than a whole one."""
_FREE_COSTS = 0.2
"""What the free words cost as a sentence of the dialogue: the grammar's hearing is better where it fits."""

_VOWELS = frozenset(("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"))
_KINDS = tuple(frozenset(kind.split()) for kind in (
    "P B", "T D DH TH", "K G", "F V", "S Z SH ZH CH JH", "M N NG", "L R ER W", "Y IY IH EY"))
"""Phones that are easily taken for one another."""


@dataclass(frozen=True, slots=True)
class Understanding:
    """What is made of an utterance so far."""

    sentence: Sentence
    reading: Reading
    """Of the trusted words; of none where nothing is trusted."""
    loose: bool = False
    """Whether it ends in free speech, of which nobody knows whether it is complete."""

    @property
    def words(self) -> tuple[str, ...]:
        """All words."""
        return tuple(self.sentence.words.split())

    @property
    def parse(self) -> Parse | None:
        """The sentence, where it is whole and trusted."""
        return self.reading.parse if self.sentence.trust is Trust.WHOLE else None

    @property
    def trusted(self) -> bool:
        """Whether the words are those of a sentence of the dialogue, or of its beginning."""
        return self.sentence.trust is Trust.WHOLE


NOTHING = Understanding(Sentence("", Trust.NONE), Reading(None, False))


@lru_cache(maxsize=4096)
def _substitution(a: str, b: str) -> float:
    if a == b:
        return 0.0
    alike = (a in _VOWELS and b in _VOWELS) or any(a in kind and b in kind for kind in _KINDS)
    return 0.5 if alike else 1.0


def distance(a: Sequence[str], b: Sequence[str]) -> float:
    """Edits between two rows of phones; taking one for a similar one counts half."""
    row = [float(j) for j in range(len(b) + 1)]
    for i, x in enumerate(a, 1):
        diagonal, row[0] = row[0], float(i)
        for j, y in enumerate(b, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + _substitution(x, y))
    return row[-1]


def distance_within(needle: Sequence[str], hay: Sequence[str]) -> float:
    """Edits between ``needle`` and the part of ``hay`` that is most like it."""
    row = [0.0] * (len(hay) + 1)
    for i, x in enumerate(needle, 1):
        diagonal, row[0] = row[0], float(i)
        for j, y in enumerate(hay, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + _substitution(x, y))
    return min(row)


@dataclass(frozen=True, slots=True)
class _Candidate:
    words: tuple[str, ...]
    reading: Reading
    distance: float
    loose: bool = False

    @property
    def cost(self) -> float:
        return self.distance + (_INCOMPLETE_COSTS if self.reading.parse is None else 0.0)


def understand(free: Words, by_grammar: Sequence[Words], speech_end: int, lexicon: Lexicon) -> Understanding:
    """Compare the ``free`` words with the grammar's, of which there may be several versions.

    ``speech_end`` is the frame in which speech ended; a word of which the greater part comes later is one that
    a decoder made out of silence.
    """
    free = _before(free, speech_end)
    if not free:
        return NOTHING
    candidates: list[_Candidate] = []
    for version in by_grammar:
        candidate = _compare(free, _before(version, speech_end), lexicon)
        if candidate is not None:
            candidates.append(candidate)
    words = tuple(heard.word for heard in free)
    reading = grammar().read(words)
    if len(words) > 1 and (reading.parse is not None or reading.open):
        candidates.append(_Candidate(words, reading, _FREE_COSTS))
    best = min(candidates, key=lambda candidate: candidate.cost, default=None)
    if best is not None and best.distance <= AGREED:
        return Understanding(Sentence(" ".join(best.words)), best.reading, best.loose)
    text = " ".join(words)
    caught = max((_caught(free, _before(version, speech_end), lexicon) for version in by_grammar),
                 key=len, default=())
    share = len(lexicon.phones(caught)) / max(1, len(lexicon.phones(words)))
    if share >= _CAUGHT:
        return Understanding(Sentence(text, Trust.HALF, " ".join(caught)), NOTHING.reading)
    return Understanding(Sentence(text, Trust.NONE), NOTHING.reading)


def _before(words: Words, frame: int) -> Words:
    return tuple(heard for heard in words if heard.middle <= frame)


def _compare(free: Words, ruled: Words, lexicon: Lexicon) -> _Candidate | None:
    """The grammar's words as a candidate; where they hold free speech, the free words stand in for it."""
    if not ruled:
        return None
    loop = [heard for heard in ruled if heard.word.startswith(FREE_PREFIX)]
    inside: Words = ()
    if loop:
        inside = tuple(heard for heard in free if loop[0].start <= heard.middle < loop[-1].end)
    fixed = [heard for heard in ruled if not heard.word.startswith(FREE_PREFIX)]
    words: list[str] = []
    for heard in sorted([*fixed, *inside], key=lambda heard: heard.start):
        words.append(heard.word)
    reading = grammar().read(words)
    if reading.parse is None and not reading.open:
        return None
    ours = lexicon.phones([heard.word for heard in fixed])
    theirs = lexicon.phones([heard.word for heard in free if heard not in inside])
    apart = distance(ours, theirs) / max(1, len(ours), len(theirs))
    return _Candidate(tuple(words), reading, apart, loose=bool(inside) and inside[-1].word == words[-1])


def _caught(free: Words, ruled: Words, lexicon: Lexicon) -> tuple[str, ...]:
    """The longest run of words that both heard at the same time."""
    best: list[Heard] = []
    run: list[Heard] = []
    for heard in ruled:
        if any(other.word == heard.word and other.start < heard.end and heard.start < other.end for other in free):
            run.append(heard)
        else:
            run = []
        if len(lexicon.phones([h.word for h in run])) > len(lexicon.phones([h.word for h in best])):
            best = list(run)
    return tuple(heard.word for heard in best)
