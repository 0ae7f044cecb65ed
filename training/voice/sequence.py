"""One stream of text and codes, in which the talker says a word once it knows the next one.

``<bos> phones of word 1, boundary, phones of word 2, boundary, <w> codes of word 1 <e>, phones of word 3, ...``; the
last word is followed by ``<eos>``. Each codec frame comes with a pointer: the phone it speaks, the one after it, and
for how many frames it has been spoken. flite's times say where the pointer moves, so the talker never has to find its
place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice.pointer import END, MAX_ADVANCE, MAX_HELD
from duologue.engine.models.embedded.voice.symbols import BOS, BOUNDARY, EOS, ID, WORD, WORD_END
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, SAMPLE_RATE
from training.voice.corpus import SpokenWord, Utterance

FRAME_S = FRAME_SAMPLES / SAMPLE_RATE
NOTHING = -1
_Row = tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Sequence:
    """Rows of the stream; every array has shape (rows,)."""

    symbol: NDArray[np.int64]
    """Text symbol, or ``NOTHING`` for a codec frame."""
    frame: NDArray[np.int64]
    """Codec frame of the utterance, or ``NOTHING``."""
    phone: NDArray[np.int64]
    """The pointer: of codec frames and of ``<w>``; 0 elsewhere."""
    following: NDArray[np.int64]
    held: NDArray[np.int64]
    advance: NDArray[np.int64]
    """How the pointer moves behind this row, or ``NOTHING`` where it does not matter."""


def symbols(word: SpokenWord) -> list[int]:
    """What a word is in the stream."""
    return [*(ID[phone] for phone in word.phones), ID[BOUNDARY + word.mark]]


def build(said: Utterance, frames: int) -> Sequence:
    """The stream of an utterance of ``frames`` codec frames."""
    words = [symbols(word) for word in said.words]
    bounds = _bounds(said, frames)
    rows: list[_Row] = [(ID[BOS], NOTHING, 0, 0, 0, NOTHING)]
    for i in range(len(words) + 1):
        rows += [(symbol, NOTHING, 0, 0, 0, NOTHING) for symbol in (words[i] if i < len(words) else [ID[EOS]])]
        if i:
            rows += _spoken(said.words[i - 1], words[i - 1], words[i] if i < len(words) else [ID[EOS]],
                            bounds[i - 1], min(bounds[i], frames))
    return Sequence(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def _bounds(said: Utterance, frames: int) -> list[int]:
    """The first frame of each word, and the end."""
    bounds = [0]
    for word in said.words[:-1]:
        bounds.append(max(bounds[-1] + 1, min(frames, round(word.pause_end / FRAME_S))))
    return [*bounds, max(bounds[-1] + 1, frames)]


def _spoken(word: SpokenWord, own: list[int], after: list[int], first: int, behind: int) -> list[_Row]:
    ends = [*word.ends, word.pause_end]
    place, held = 0, 0

    def following() -> int:
        return own[place + 1] if place + 1 < len(own) else after[0]

    rows: list[_Row] = [(ID[WORD], NOTHING, own[0], following(), 0, NOTHING)]
    for frame in range(first, behind):
        move, middle = 0, (frame + 0.5) * FRAME_S
        while place + move < len(own) - 1 and ends[place + move] <= middle and move < MAX_ADVANCE:
            move += 1
        rows[-1] = (*rows[-1][:5], move)
        held = 0 if move else min(held + 1, MAX_HELD)
        place += move
        rows.append((NOTHING, frame, own[place], following(), held, NOTHING))
    rows[-1] = (*rows[-1][:5], END)
    return [*rows, (ID[WORD_END], NOTHING, 0, 0, 0, NOTHING)]
