"""Speech over a reply: does the caller take the floor, or only show that they listen?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from duologue.engine.models.embedded.agreement import Understanding, distance_within
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import is_backchannel
from duologue.engine.models.embedded.lexicon import Sounds

ECHO_S = 5.0
"""Seconds of the agent's voice after which the caller's echo canceller has adapted: what is heard then is the
caller. (Browsers need one to three seconds of far-end speech.)"""
LONG_MS = 700
"""Speech that goes on this long is no "mm-hm", whatever it says."""
_SURE_WORDS = 3
"""Trusted words that need no second look."""
_ECHO = 0.4
"""Distance per phone to the agent's own words below which speech is their echo."""
_SHORT = 6
"""Phones below which only the very same words are an echo: nearly everything is like some part of a story."""


class Verdict(Enum):
    """What speech over a reply is."""

    UNDECIDED = "undecided"
    KEEPS = "keeps"
    """Backchannel, noise, echo: the reply goes on."""
    TAKES = "takes"
    """The caller wants the floor."""


def is_echo(words: Sequence[str], reply: str, lexicon: Sounds) -> bool:
    """Whether ``words`` are (nearly) a part of ``reply``; with a "stop" behind them that is not in it they are not."""
    spoken = reply.lower().replace(",", " ").replace(".", " ").split()
    if words and words[-1] not in spoken and _stops(words[-1:]):
        return False
    phones = lexicon.phones(words)
    if len(phones) < _SHORT:
        return bool(words) and all(word in spoken for word in words)
    return distance_within(phones, lexicon.phones_of_text(reply)) <= _ECHO * len(phones)


def _stops(words: Sequence[str]) -> bool:
    parse = grammar().read(words).parse
    return parse is not None and parse.intent == "stop"


def _is_nod_with_a_tail(words: Sequence[str]) -> bool:
    """Whether this is a backchannel and one more word: the breath after "okay" is easily heard as a word."""
    return len(words) > 1 and all(is_backchannel(word) for word in words[:-1])


def judge(understanding: Understanding, spoken_ms: int, *, over: bool, settled: bool,
          long_ms: int = LONG_MS) -> Verdict:
    """The verdict on speech of ``spoken_ms`` so far; ``over`` when it has ended.

    ``settled`` says that the same was understood a moment ago: a decoder's newest word may still change.
    Speech of ``long_ms`` takes the floor whatever it says, and at its end it need be no longer than LONG_MS.
    Speech that is an echo is not judged here.
    """
    words = understanding.sentence.words
    if not words:
        return Verdict.KEEPS if over else Verdict.UNDECIDED
    if is_backchannel(words):
        return Verdict.KEEPS if over else Verdict.UNDECIDED
    whole = understanding.parse
    stop = whole is not None and whole.intent == "stop"
    if not stop and spoken_ms < LONG_MS and _is_nod_with_a_tail(words.split()):
        return Verdict.KEEPS if over else Verdict.UNDECIDED
    whole = understanding.parse
    if whole is not None and whole.intent == "fragment":
        whole = None
    count = len(understanding.words)
    # A single word that is no sentence is what decoders make of a cough.
    if understanding.trusted and (whole is not None or count > 1):
        stops = whole is not None and whole.intent == "stop"
        return Verdict.TAKES if over or stops or settled or count >= _SURE_WORDS else Verdict.UNDECIDED
    if spoken_ms >= (LONG_MS if over else long_ms):
        return Verdict.TAKES
    return Verdict.KEEPS if over else Verdict.UNDECIDED
