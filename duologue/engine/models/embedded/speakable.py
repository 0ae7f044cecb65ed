"""From a reply's text, as it appears, to words a front end can say, each with its place in the text.

A word here is what stands between two white spaces (or a dash). Its tokens are ASCII: letters lose their
accents, symbols that are read aloud become words, everything else is left out. Numbers, times, money and
abbreviations stay as they are: flite's own text analysis reads those.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from enum import IntEnum

from duologue.engine.models.embedded.flite import Token

MAX_WORD_CHARS = 32
"""A longer run without white space is cut here, so that what flite gets stays small."""


class Break(IntEnum):
    """How much of a pause follows a word."""

    NONE = 0
    CLAUSE = 1
    SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Word:
    """Characters [start, end) of the text, what is said for them, and the pause after them."""

    start: int
    end: int
    tokens: tuple[Token, ...]
    pause: Break


MARKS = {Break.NONE: "", Break.CLAUSE: ",", Break.SENTENCE: "."}
"""The punctuation that makes flite shape its melody for a break."""
_SYMBOLS = {
    "&": "and", "+": "plus", "=": "equals", "×": "times", "÷": "divided by", "°": "degrees", "@": "at",
    "€": "euros", "£": "pounds", "√": "square root of", "½": "one half", "¼": "one quarter",
    "¾": "three quarters", "π": "pi", "≈": "about", "<": "less than", ">": "greater than",
}
_SAME = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "–": "-", "‑": "-", "−": "-", "‐": "-", "⁄": "/",
                       "æ": "ae", "Æ": "Ae", "ß": "ss", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
                       "Đ": "D", "þ": "th", "ð": "th", "œ": "oe", "Œ": "Oe"})
_LETTER = r"[^\W\d_]"
_MARKS_AFTER = rf"(?:(?<={_LETTER})[,;!?]|(?:(?<={_LETTER}{_LETTER})|(?<='{_LETTER}))[.:])"
"""A mark where it ends a piece whatever follows: not in "3,000", "3.14", "10:30" or "e.g."."""
_CLOSERS = "\"')\\]”"
_PIECE = re.compile(rf"\s+|—|--+"
                    rf"|(?:(?!--)(?!{_MARKS_AFTER})[^\s—]){{1,{MAX_WORD_CHARS}}}(?:{_MARKS_AFTER}[,;:.!?]*[{_CLOSERS}]*)?"
                    rf"|{_MARKS_AFTER}[,;:.!?]*[{_CLOSERS}]*")
"""White space, a dash, or a piece of text that makes one word."""
_ENDS_EARLY = re.compile(rf"{_MARKS_AFTER}[,;:.!?]*[{_CLOSERS}]*$")
"""What completes a piece although the text after it is not known yet."""
_TAIL = re.compile(r"[^\w%°€£+]+$")
_TOKEN = re.compile(r"[^A-Za-z0-9'.,:/%$-]+")
_DOTTED = re.compile(r"(?:[A-Za-z]\.)+[A-Za-z]")
_ABBREVIATIONS = frozenset(["mr", "mrs", "ms", "dr", "st", "prof", "vs", "jr", "sr", "etc", "approx", "ph"])


class Scanner:
    """Cuts growing text into words; holds back the last piece until it is known to be complete."""

    def __init__(self, start: int = 0) -> None:
        """``start`` is the place in the whole text of the first character that will be pushed."""
        self._start = start
        self._rest = ""

    def push(self, text: str) -> list[Word]:
        """Add text; returns the words it completes."""
        return self._take(self._rest + text, finished=False)

    def finish(self) -> list[Word]:
        """Say that no more text comes; returns the words left."""
        return self._take(self._rest, finished=True)

    def _take(self, text: str, finished: bool) -> list[Word]:
        words: list[Word] = []
        at = 0
        for match in _PIECE.finditer(text):
            piece = match.group()
            open_end = match.end() == len(text) and not piece.isspace()
            if open_end and not finished and len(piece) < MAX_WORD_CHARS and not _ENDS_EARLY.search(piece):
                break
            at = match.end()
            if not piece.isspace():
                words.append(_word(piece, self._start + match.start()))
        self._start, self._rest = self._start + at, text[at:]
        return words


def _word(piece: str, start: int) -> Word:
    """The word for a piece of text; without tokens if there is nothing in it to say."""
    if piece == "—" or piece.startswith("--") or piece in ("-", "–"):
        return Word(start, start + len(piece), (), Break.CLAUSE)
    tail = _TAIL.search(piece)
    body = piece[:tail.start()] if tail else piece
    pause = _pause(body, tail.group() if tail else "")
    tokens = _tokens(body)
    if tokens:
        tokens = (*tokens[:-1], replace(tokens[-1], punctuation=MARKS[pause]))
    if _DOTTED.fullmatch(body) and tail and tail.group()[0] == ".":
        body += "."
    lead = len(body) - len(body.lstrip("\"'`([{<*_#~“‘«"))
    return Word(start + min(lead, len(body)), start + len(body), tokens, pause)


def _pause(body: str, tail: str) -> Break:
    if any(mark in tail for mark in "!?") or "…" in tail:
        return Break.SENTENCE
    if "." in tail:
        if _DOTTED.fullmatch(body) or body.lower() in _ABBREVIATIONS:
            return Break.NONE
        return Break.CLAUSE if re.fullmatch("[A-HJ-Z]", body) else Break.SENTENCE
    return Break.CLAUSE if any(mark in tail for mark in ",;:") else Break.NONE


def _tokens(body: str) -> tuple[Token, ...]:
    spelled = "".join(f" {_SYMBOLS[char]} " if char in _SYMBOLS else char for char in body.translate(_SAME))
    spelled = re.sub(r"(?<=\d)\*(?=\d)", " times ", spelled)
    spelled = re.sub(r"#(?=\d)", " number ", spelled)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode("ascii")
    names = (_TOKEN.sub(" ", plain)).split()
    trimmed = (re.sub(r"^[^A-Za-z0-9$-]+|[^A-Za-z0-9%]+$", "", name) for name in names)
    return tuple(Token(name) for name in trimmed if re.search(r"[A-Za-z0-9]", name))
