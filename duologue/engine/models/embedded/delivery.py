"""From flite's speech for a phrase to the vectors that are really said: neighbours cut off, pauses set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.flite import Speech
from duologue.engine.models.embedded.phrasing import Phrase
from duologue.engine.models.embedded.speakable import Break, Word
from duologue.engine.models.embedded.voice_format import FRAME_VECTORS

_LEAD = 8
"""Vectors of silence before a reply's first sound (40 ms)."""
_ONSET = 4
"""Vectors kept before a phrase that starts afresh: the model prepares a sound some 20 ms ahead."""
_PAUSE = {Break.CLAUSE: 24, Break.SENTENCE: 56}
"""Vectors of pause after a word (120 and 280 ms at rate 1)."""
_MAX_GAP = 12
"""Vectors that may be left of a pause which flite makes where the text has no mark (60 ms)."""
_END = 16
"""Vectors of silence after a reply's last sound (80 ms)."""


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """Vectors, float32, shape (n, VECTOR_WIDTH), and for each word said its half-open range in them."""

    vectors: NDArray[np.float32]
    words: tuple[tuple[Word, int, int], ...]


def deliver(speech: Speech, phrase: Phrase, begins: bool, rate: float, pending: int) -> Delivery:
    """Take the phrase's own words out of ``speech`` and give each pause its length.

    ``begins`` says that it is the reply's first phrase. ``pending`` vectors wait for the phrase: if it ends
    in a pause, that is stretched to fill the last codec frame. Words that flite does not say are left out.
    """
    parts: list[NDArray[np.float32]] = []
    said: list[tuple[Word, int, int]] = []
    length = 0
    spoken = _ranges(speech, phrase)
    for i, (word, first, end, gap_end) in enumerate(spoken):
        if i == 0:
            lead = _LEAD if begins else 0 if phrase.before else _ONSET
            parts.append(_resized(speech.vectors[:first], lead) if lead else speech.vectors[:0])
            length += lead
        is_last = i == len(spoken) - 1
        marked = word.pause is not Break.NONE
        pause = round(_PAUSE[word.pause] / rate) if marked else min(gap_end - end, _MAX_GAP)
        if is_last and phrase.final:
            pause = _END
        if is_last and (marked or phrase.final):
            pause += -(pending + length + end - first + pause) % FRAME_VECTORS
        said.append((word, length, length + end - first))
        parts += [speech.vectors[first:end], _resized(speech.vectors[end:gap_end], pause)]
        length += end - first + pause
    return Delivery(np.concatenate(parts) if parts else speech.vectors[:0], tuple(said))


def _ranges(speech: Speech, phrase: Phrase) -> list[tuple[Word, int, int, int]]:
    """Of each word said: its vectors' first and end, and where the gap after it ends."""
    token = sum(len(word.tokens) for word in phrase.before)
    found: list[tuple[Word, int, int]] = []
    for word in phrase.words:
        mine = [r for r in speech.tokens[token:token + len(word.tokens)] if r]
        token += len(word.tokens)
        if mine:
            found.append((word, mine[0][0], mine[-1][1]))
    later = next((r[0] for r in speech.tokens[token:] if r), len(speech.vectors))
    gap_ends = [first for _, first, _ in found[1:]] + [later]
    return [(*entry, gap_end) for entry, gap_end in zip(found, gap_ends, strict=True)]


def _resized(pause: NDArray[np.float32], length: int) -> NDArray[np.float32]:
    """``pause`` cut or stretched in its middle, so that the sounds around it keep their edges."""
    if not len(pause):
        return np.empty((0, *pause.shape[1:]), np.float32)
    half = min(len(pause), length) // 2
    middle = length - 2 * half
    center = np.repeat(pause[[len(pause) // 2]], middle, axis=0)
    return np.concatenate([pause[:half], center, pause[len(pause) - half:]])
