"""Reads the binary trigram models of pocketsphinx, whose own writer of text crashes (5.1.1).

The format is that of its ``lm_trie.c``: counts, tables of the 65 536 values a quantised probability or weight can have,
unigrams, and packed bits of bigrams and trigrams, which hang below their *last* word; all little-endian.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from training.thinker.backoff import Backoff, Floats, Grams, Ints

_MAGIC = b"Trie Language Model"
_LOG_BASE = np.log(1.0001)
"""Probabilities are stored as logarithms to pocketsphinx's default ``logbase``."""
_BINS = 1 << 16
_UNIGRAM = np.dtype([("log", "<f4"), ("weight", "<f4"), ("next", "<u4")])


class TrieError(ValueError):
    """A file that is no trigram model of pocketsphinx's."""


def read(path: Path) -> Backoff:
    """The model in ``path``; raises TrieError."""
    data = path.read_bytes()
    if not data.startswith(_MAGIC) or data[len(_MAGIC)] != 3:
        raise TrieError(f"{path.name} is no trigram model in pocketsphinx's binary format")
    at = len(_MAGIC) + 1
    counts = [int(count) for count in np.frombuffer(data, "<u4", 3, at)]
    at += 3 * 4 + 4
    tables = np.frombuffer(data, "<f4", 3 * _BINS, at).reshape(3, _BINS).astype(np.float64) * _LOG_BASE
    at += 3 * _BINS * 4
    unigrams = np.frombuffer(data, _UNIGRAM, counts[0] + 1, at)
    at += unigrams.nbytes
    word_bits, next_bits = counts[0].bit_length(), counts[2].bit_length()
    # The counts are upper bounds: where the children of the last entry end is how many there are.
    middle = _Bits(data, at, int(unigrams["next"][-1]) + 1, word_bits + 32 + next_bits)
    at += _size(counts[1], word_bits + 32 + next_bits)
    begins = middle.field(word_bits + 32, next_bits)
    longest = _Bits(data, at, int(begins[-1]), word_bits + 16)
    at += _size(counts[2], word_bits + 16)
    words = data[at + 4:].split(b"\0")[:counts[0]]
    lasts = _owners(unigrams["next"].astype(np.int64))
    pairs = _owners(begins)
    size = counts[0]
    firsts = middle.field(0, word_bits)[:-1]
    twos = firsts * size + lasts
    threes = (longest.field(0, word_bits) * size + firsts[pairs]) * size + lasts[pairs]
    return Backoff(
        tuple(word.decode("utf-8") for word in words),
        Grams(np.arange(size), unigrams["log"][:-1].astype(np.float64) * _LOG_BASE,
              unigrams["weight"][:-1].astype(np.float64) * _LOG_BASE),
        _sorted(twos, tables[0][middle.field(word_bits + 16, 16)[:-1]], tables[1][middle.field(word_bits, 16)[:-1]]),
        _sorted(threes, tables[2][longest.field(word_bits, 16)], np.zeros(len(threes))))


class _Bits:
    """``count`` entries of ``width`` bits each, from byte ``start``."""

    def __init__(self, data: bytes, start: int, count: int, width: int) -> None:
        self._data = np.frombuffer(data, np.uint8, _size(count, width), start)
        self._starts = np.arange(count, dtype=np.int64) * width

    def field(self, offset: int, bits: int) -> Ints:
        """The field of ``bits`` at bit ``offset`` of every entry."""
        at = self._starts + offset
        value = np.zeros(len(at), np.uint64)
        for byte in range(5):
            value |= self._data[(at >> 3) + byte].astype(np.uint64) << np.uint64(8 * byte)
        return ((value >> (at & 7).astype(np.uint64)) & np.uint64((1 << bits) - 1)).astype(np.int64)


def _size(count: int, width: int) -> int:
    """Bytes of ``count`` entries and one more; eight let the last be read as a whole word."""
    return ((count + 1) * width + 7) // 8 + 8


def _owners(begins: NDArray[np.int64]) -> Ints:
    """Whose each child is, of owners whose children begin at ``begins``; the last of these is their end."""
    return np.repeat(np.arange(len(begins) - 1), np.diff(begins))


def _sorted(keys: Ints, logs: Floats, weights: Floats) -> Grams:
    order = np.argsort(keys, kind="stable")
    return Grams(keys[order], logs[order], weights[order])
