"""A reply's text as it comes to a talker: what is new of each delta, up to a limit, in words."""

from __future__ import annotations

from duologue.engine.messages import ReplyText
from duologue.engine.models.embedded.speakable import Scanner, Word
from duologue.metrics import DROPS

MAX_REPLY_CHARS = 20_000
"""Characters of one reply (some twenty minutes of speech); what comes after them is not said."""
_SLOWEST, _FASTEST = 0.5, 2.0


class Reading:
    """One reply's text."""

    def __init__(self, start: int) -> None:
        """``start`` is the place in the whole text of the first character that will come."""
        self.rate = 1.0
        """How fast it is to be said now, within what can be done."""
        self._scanner = Scanner(start)
        self._next_char = start
        self._room = MAX_REPLY_CHARS

    def read(self, delta: ReplyText) -> list[Word]:
        """The words a delta completes; text that was there already is passed over, text beyond the limit dropped."""
        fresh = delta.text[max(self._next_char - delta.start, 0):]
        text = fresh[:self._room]
        if len(text) < len(fresh):
            DROPS.labels(what="reply_text", reason="too_long").inc()
        self._next_char += len(text)
        self._room -= len(text)
        self.rate = min(max(delta.rate, _SLOWEST), _FASTEST)
        words = self._scanner.push(text)
        return [*words, *self._scanner.finish()] if delta.last else words
