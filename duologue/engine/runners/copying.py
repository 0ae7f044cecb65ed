"""Which tokens may come next where a segment copies: the rule of ``Sampling.copy``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duologue.engine.runners.base import Copy


def allowed(copy: Copy, said: Sequence[int]) -> tuple[int, ...]:
    """Give what may come behind ``said``, in order and once each; empty where nothing is being copied.

    It is empty, too, behind tokens that are no piece of any text: whoever forced them goes on by himself.
    """
    begun = next((place for place in reversed(range(len(said))) if said[place] in copy.opens), None)
    if begun is None:
        return ()
    piece = tuple(said[begun + 1:])
    if any(token in copy.closes for token in piece):
        return ()
    return tuple(sorted({token for text in copy.texts for token in _next(copy, text, piece)}))


def _next(copy: Copy, text: Sequence[tuple[int, ...]], piece: tuple[int, ...]) -> Iterator[int]:
    """What comes behind ``piece`` wherever in ``text`` it stands from the beginning of a word on."""
    for first in range(len(text)):
        left = piece
        for word in text[first:]:
            if len(left) < len(word):
                if word[:len(left)] == left:
                    yield word[len(left)]
                    if piece and not left:
                        yield from copy.closes
                break
            if left[:len(word)] != word:
                break
            left = left[len(word):]
        else:
            if not left:
                yield from copy.closes
