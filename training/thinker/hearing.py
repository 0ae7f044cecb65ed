"""What is wanted where a sentence was heard with errors: its answer, if what makes it up has come through, or to ask.

A slot must have come through whole: only the words of an open place are taken as they were heard, and a number for
another number, since nobody could tell. Around slots enough must be left to tell what is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from duologue.engine.models.embedded.dialogue.numbers import NUMBER_WORDS, read_number
from duologue.engine.models.embedded.thinking.doubt import ASK_BACK
from duologue.engine.models.embedded.thinking.format import Answer, Call
from training.thinker.errors import Came, Confusions
from training.thinker.moments import do, say
from training.thinker.phrasebook import Phrasebook, Said

OPEN = frozenset(("text", "task", "name", "word"))
"""Slots that any words may fill."""
NUMBERS = frozenset(("left", "right", "share", "whole", "number", "start", "stop", "step"))
_ENOUGH = 0.6
"""Of what a sentence tells, the part that must be left."""
_WORDS_MS, _LOOSE_MS, _GROWING_MS, _WHOLE_MS = 640, 400, 240, 160


@dataclass(frozen=True, slots=True)
class Heard:
    """A sentence as it was heard, what is wanted then, and the silence in ms after which it is answered."""

    words: tuple[str, ...]
    wanted: Answer
    kind: str
    patience_ms: int


def answer(said: Said, slots: dict[str, str], says: str) -> Answer:
    """What is wanted of a sentence whose slots came as ``slots``: ``says`` where that is not empty."""
    return say(says) if says else do(Call(said.intent, slots))


def whole(said: Said, says: str) -> Heard:
    """``said`` as it was said; ``says`` is the reply, empty for a skill's."""
    wanted = answer(said, {slot: said.value(slot) for slot in said.slots}, says)
    return Heard(said.words, wanted, f"{'reply' if says else 'call'}:{said.intent}", patience(said.words, said.slots))


def patience(words: Sequence[str], slots: Mapping[str, tuple[int, int]]) -> int:
    """The silence after which a whole sentence is answered: the longer, the more likely it goes on."""
    last = next((slot for slot, (_, end) in slots.items() if end == len(words)), "")
    if last in ("text", "task"):
        return _WORDS_MS
    if last in ("name", "word"):
        return _LOOSE_MS
    return _GROWING_MS if last or words[-1] in NUMBER_WORDS else _WHOLE_MS


def misheard(said: Said, says: str, came: Sequence[Came], book: Phrasebook) -> Heard | None:
    """``said`` as it ``came``; None where that is another sentence that makes sense."""
    words = tuple(one.word for one in came)
    if not words:
        return None
    if book.matcher.intents(words) - {said.intent}:
        return None
    slots: dict[str, tuple[int, int]] = {}
    for slot, (start, end) in said.slots.items():
        places = [i for i, one in enumerate(came) if one.source is not None and start <= one.source < end]
        if not places:
            return _asks_again(words)
        first, last = places[0], places[-1] + 1
        if slot not in OPEN and not _same(slot, came[first:last], end - start):
            return _asks_again(words)
        slots[slot] = (first, last)
    inside = {place for start, end in said.slots.values() for place in range(start, end)}
    around = [place for place in range(len(said.words)) if place not in inside]
    left = {one.source for one in came if one.right}
    told = book.told(said.words[place] for place in around)
    if told and book.told(said.words[place] for place in around if place in left) < _ENOUGH * told:
        return _asks_again(words)
    values = {slot: " ".join(words[start:end]) for slot, (start, end) in slots.items()}
    return Heard(words, answer(said, values, says), f"{'reply' if says else 'call'}:{said.intent}",
                 patience(words, slots))


def hear(said: Said, says: str, confusions: Confusions, book: Phrasebook, random: Random, level: float) -> Heard:
    """``said`` with errors ``level`` times as frequent as they are; 0 for none."""
    if level:
        heard = misheard(said, says, confusions.hear(said.words, random, level), book)
        if heard is not None:
            return heard
    return whole(said, says)


def _same(slot: str, came: Sequence[Came], length: int) -> bool:
    if slot in NUMBERS:
        return read_number([one.word for one in came]) is not None
    return len(came) == length and all(one.right for one in came)


def _asks_again(words: tuple[str, ...]) -> Heard:
    return Heard(words, say(ASK_BACK), "ask_again", _WORDS_MS)
