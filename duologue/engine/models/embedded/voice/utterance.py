"""One sentence of the trained voice: words in, one after another, codec frames out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS, Network
from duologue.engine.models.embedded.voice.pointer import Pointer
from duologue.engine.models.embedded.voice.symbols import BOS, ID, WORD, WORD_END

CODEBOOKS = 4
"""Codes of a frame."""
CODES = 512
"""Of a codebook: three digits of 8 levels, the first one lowest."""
_PLACES = LEVELS ** np.arange(DIGITS // CODEBOOKS)


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A word's codec frames, int32 (n, CODEBOOKS), and for each the place in the word's symbols that it speaks."""

    codes: NDArray[np.int32]
    places: tuple[int, ...]


class Utterance:
    """A sentence begins a new stream: what was said before it does not count, and positions stay small."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._stream = network.open()
        self._unread = [ID[BOS]]
        self._begun = False

    def say(self, word: Sequence[int], after: Sequence[int]) -> Said:
        """Say the next ``word``, its phones and its boundary; ``after`` is the one behind it, or ``<eos>``.

        ``after`` is read ahead: it must be the next call's ``word``.
        """
        network, stream = self._network, self._stream
        if not self._begun:
            self._unread += word
            self._begun = True
        pointer = Pointer(word, after[0])
        state = network.read_text(stream, [*self._unread, *after, ID[WORD]], pointer.position)
        self._unread = [ID[WORD_END]]
        frames: list[list[int]] = []
        places: list[int] = []
        while pointer.move(network.moves(state)):
            digits = network.digits(state, pointer.position)
            state = network.read_frame(stream, digits, pointer.position)
            frames.append(digits)
            places.append(pointer.place)
        return Said(to_codes(np.array(frames)), tuple(places))


def to_codes(digits: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
    """Codes (n, CODEBOOKS) of digits (n, DIGITS)."""
    codes: NDArray[np.int32] = (digits.reshape(len(digits), CODEBOOKS, -1) @ _PLACES).astype(np.int32)
    return codes


def to_digits(codes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Digits (n, DIGITS) of codes (n, CODEBOOKS)."""
    return (codes[..., None] // _PLACES.astype(np.int32) % LEVELS).reshape(len(codes), DIGITS)
