"""Text to tokens and back: greedy longest-match word pieces (WordPiece, arXiv 1609.08144), small enough to stand here.

``tokenizer.json`` is the ``tokenizers`` library's format, so that others read it too; this needs neither.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from duologue.engine.config import ConfigError

_INNER = "##"
"""Begins a piece that goes on with a word."""
WORD = re.compile(r"[A-Za-z'’-]+|[0-9]|[^\sA-Za-z0-9]")
"""Words, single digits, single marks."""
_TIGHT = frozenset(".,?!:;%)")
"""Marks that stand close to the word before them."""


class Vocabulary:
    """``ids`` names every token; ``unknown`` stands for a character that is in none."""

    def __init__(self, ids: Mapping[str, int], special: Iterable[str], unknown: str = "<unk>") -> None:
        self._ids = dict(ids)
        self._tokens = {id: token for token, id in self._ids.items()}
        self.special = frozenset(special)
        self._unknown = self._ids[unknown]
        self._pieces = lru_cache(maxsize=4096)(self._split)

    @classmethod
    def read(cls, file: Path) -> Vocabulary:
        """Read ``tokenizer.json``; raises ``ConfigError`` for one that holds no word pieces."""
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
            model = value["model"]
            if model["type"] != "WordPiece":
                raise ConfigError(f"{file}: the model is {model['type']}, not WordPiece")
            return cls(model["vocab"], (added["content"] for added in value["added_tokens"]), model["unk_token"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{file}: no word pieces: {error}") from None

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __getitem__(self, token: str) -> int:
        """The id of one token by name."""
        return self._ids[token]

    def name(self, id: int) -> str:
        """The token with this id."""
        return self._tokens[id]

    def encode(self, text: str) -> tuple[int, ...]:
        """The pieces of ``text``; what looks like a special token in it is text."""
        return tuple(id for word in WORD.findall(text) for id in self._pieces(word))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of pieces; special tokens have none."""
        text = ""
        for id in ids:
            token = self._tokens[id]
            if token in self.special:
                continue
            if token.startswith(_INNER):
                text += token[len(_INNER):]
            elif not text or token in _TIGHT:
                text += token
            else:
                text += f" {token}"
        return text

    def _split(self, word: str) -> tuple[int, ...]:
        found = list[int]()
        at = 0
        while at < len(word):
            for end in range(len(word), at, -1):
                piece = word[at:end] if at == 0 else _INNER + word[at:end]
                if piece in self._ids and piece not in self.special:
                    found.append(self._ids[piece])
                    at = end
                    break
            else:
                return (self._unknown,)
        return tuple(found)
