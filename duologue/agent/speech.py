"""A text spoken for somebody who is in no call: piece by piece, each as soon as the one before it is over."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

from duologue.engine import Pcm, ReplyAudio, SpeechSession, TurnEnd, TurnStatus

PIECE_CHARS = 600
"""Characters the voice is given at once: a minute or so of speech, where a codec lets three minutes wait for it."""
_SENTENCE_END = re.compile(r"[.?!]\S*\s+|\n+")
_SPACE = re.compile(r"\s+")


class SpeechFailed(Exception):  # noqa: N818 - the name of the answer, not of a fault
    """The rest of the text will not be said; the text says why."""


def pieces(text: str) -> Iterator[str]:
    """``text`` in pieces of ``PIECE_CHARS`` at most, cut after sentences where it can be, between words if not."""
    while len(text) > PIECE_CHARS:
        head = text[:PIECE_CHARS]
        end = next((found[-1].end() for pattern in (_SENTENCE_END, _SPACE)
                    if (found := list(pattern.finditer(head)))), PIECE_CHARS)
        yield text[:end]
        text = text[end:]
    if text:
        yield text


class Speech:
    """One text and the session that says it, which is to be given back with ``close``."""

    def __init__(self, session: SpeechSession, text: str, pace: float, sample_rate: int) -> None:
        """``pace`` 1 is the voice's own."""
        self.sample_rate = sample_rate
        """Of its sound, in Hz."""
        self._session = session
        self._text = text
        self._pace = pace

    async def sound(self) -> AsyncIterator[Pcm]:
        """Yield the sound as it is made, int16, shape (n,), n > 0. Raises ``SpeechFailed``. For one reader, once."""
        events = self._session.outputs()
        for piece in pieces(self._text):
            self._session.say(piece, self._pace)
            async for event in events:
                if isinstance(event, ReplyAudio) and event.pcm.size:
                    yield event.pcm
                elif isinstance(event, TurnEnd):
                    if event.status is not TurnStatus.DONE:
                        raise SpeechFailed(event.reason or "it was interrupted")
                    break
            else:
                raise SpeechFailed("the server closed its session")

    async def close(self) -> None:
        """Give the session back; idempotent."""
        await self._session.close()
