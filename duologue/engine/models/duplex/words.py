"""Tokens to text as they come. A character whose bytes are not all there yet waits for them."""

from __future__ import annotations

import codecs
from functools import cache

from tokenizers import Tokenizer, decoders

from duologue.engine.config import ConfigError


class Words:
    """The bytes of every token of a byte-level tokenizer; raises ``ConfigError`` for one of another kind."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer.decoder, decoders.ByteLevel):
            raise ConfigError("tokenizer.json: only byte-level tokenizers can be read token by token, "
                              "those whose decoder is of type ByteLevel")
        special = {id for id, added in tokenizer.get_added_tokens_decoder().items() if added.special}
        self._bytes = {id: b"" if id in special else bytes(_bytes_of()[char] for char in token if char in _bytes_of())
                       for token, id in tokenizer.get_vocab(with_added_tokens=True).items()}

    def of(self, token: int) -> bytes:
        """The bytes ``token`` stands for; none for a special one, or one there is no word for."""
        return self._bytes.get(token, b"")


class Text:
    """One reply's text, grown by tokens."""

    def __init__(self, words: Words) -> None:
        self._words = words
        # What is no UTF-8 at all becomes U+FFFD at once, so that at most three bytes wait.
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.text = ""
        self.tokens: list[int] = []
        self.ends: list[int] = []
        """Where each token ends in the text; one that ends within a character ends with it."""
        self._whole = 0
        """Tokens whose ends are known."""

    @property
    def whole(self) -> int:
        """Tokens that have all their characters in the text: the first so many."""
        return self._whole

    def add(self, token: int) -> None:
        """Add the next token."""
        self.tokens.append(token)
        self.text += self._decoder.decode(self._words.of(token))
        self.ends.append(len(self.text))
        if not self._decoder.getstate()[0]:
            self._settle()

    def end(self) -> None:
        """No more comes: the beginning of a character that is left is none."""
        self._decoder.reset()
        self._settle()

    def _settle(self) -> None:
        for i in range(self._whole, len(self.ends)):
            self.ends[i] = len(self.text)
        self._whole = len(self.ends)


@cache
def _bytes_of() -> dict[str, int]:
    """The byte each character of a byte-level vocabulary stands for (GPT-2's table: printable ones for themselves)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}
