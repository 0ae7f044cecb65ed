"""What a caller makes of a reply: the number in it, as read by the independent ear."""

from __future__ import annotations

from tests.harness.recogniser import fit, number_words
from tests.harness.sound import RATE, Sound

_SENTENCE = ("[<number> (plus | minus | times | and | divided by) <number> (is | are | makes | equals) | that is | "
             "that makes | it is | the answer is | [the last number] [i said] was | i said | it was] <number>")


def number_in(reply: Sound, rate: int = RATE) -> int | None:
    """The number a short reply ends with ("seven plus five is twelve"); None if nothing was said."""
    numbers = number_words(fit(reply, _SENTENCE, rate))
    return numbers[-1] if numbers else None
