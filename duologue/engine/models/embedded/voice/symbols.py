"""The trained talker's text side: phones, word boundaries with their marks, and what frames the stream."""

from __future__ import annotations

VOWELS = ("aa", "ae", "ah", "ao", "aw", "ax", "ay", "eh", "er", "ey", "ih", "iy", "ow", "oy", "uh", "uw")
CONSONANTS = ("b", "ch", "d", "dh", "f", "g", "hh", "jh", "k", "l", "m", "n", "ng", "p", "r", "s", "sh", "t", "th", "v",
              "w", "y", "z", "zh")
BOUNDARY = "|"
"""Ends a word; a mark stands behind it."""
MARKS = ("", ",", ".", "?", "!")
BOS, EOS, WORD, WORD_END = "<bos>", "<eos>", "<w>", "<e>"

PHONES = (*(vowel + stress for vowel in VOWELS for stress in "01"), *CONSONANTS)
SYMBOLS = (BOS, EOS, WORD, WORD_END, *(BOUNDARY + mark for mark in MARKS), *PHONES)
ID = {symbol: i for i, symbol in enumerate(SYMBOLS)}


def named(name: str, stress: str) -> str:
    """The symbol of flite's phone ``name`` in a syllable with ``stress`` ("0" or "1")."""
    return name + stress if name in VOWELS else name


def is_vowel(phone: str) -> bool:
    """Whether ``phone``, with its stress, is a vowel."""
    return phone[:-1] in VOWELS
