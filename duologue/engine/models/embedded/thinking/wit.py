"""A dialogue's wit that is trained: the thinker says which skill makes a reply, or says it itself."""

from __future__ import annotations

from dataclasses import replace

from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.memory import Context, Memory
from duologue.engine.models.embedded.dialogue.policy import HANDLERS, Answer, Sentence, is_backchannel
from duologue.engine.models.embedded.dialogue.templates import Parse
from duologue.engine.models.embedded.sound import joined
from duologue.engine.models.embedded.thinking.doubt import ASK_BACK
from duologue.engine.models.embedded.thinking.format import PAUSES_MS, Call, Heard
from duologue.engine.models.embedded.thinking.record import Record

_SETTLED_MS = (640, PAUSES_MS[-1])
"""Silences after which a sentence is put to the thinker that was not while it was spoken: typed ones, for example."""
_MOST_WORDS = 40
"""Words of one sentence that are read, the last ones."""


class Thought:
    """Over one session's ``record``; see ``Wit``."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def respond(self, memory: Memory, sentence: Sentence, context: Context) -> tuple[Answer | None, Memory]:
        """See ``Wit``; the thinker remembers the talk by itself, ``memory`` is its skills'."""
        heard = self._heard(sentence)
        answer = self._record.ask(heard)
        if not answer.speaks or answer.keeps:
            return None, memory
        noted = replace(memory.hearing(sentence.words), pending="", offer="", missed=0)
        if answer.call is None:
            return Answer(answer.text, "talk", memory.rate), noted
        if not takes(answer.call):
            return Answer(ASK_BACK, "ask_back", memory.rate), noted
        parse = Parse(answer.call.name, answer.call.slots)
        made = memory.offer if parse.intent == "yes" and memory.offer else parse.intent
        text, after = HANDLERS[made](parse.slots, noted, context)
        return (Answer(text, made, after.rate, parse) if text else None), after

    def joined(self, earlier: Sentence | None, later: Sentence) -> Sentence:
        """See ``Wit``: both together are for the thinker to understand."""
        if earlier is None:
            return later
        if is_backchannel(later.words):
            return earlier
        sounds = joined(*((len(part.words.split()), part.sounds) for part in (earlier, later)))
        return Sentence(f"{earlier.words} {later.words}", sounds=sounds)

    def said(self, turn: int, sentence: Sentence | None, answer: Answer) -> None:
        """See ``Wit``."""
        call = Call(answer.call.intent, dict(answer.call.slots)) if answer.call is not None else None
        self._record.replied(turn, None if sentence is None else self._heard(sentence), call, answer.text)

    def passed(self, sentence: Sentence) -> None:
        """See ``Wit``."""
        if sentence.words:
            self._record.listened(self._heard(sentence))

    def cut(self, turn: int, heard: str) -> None:
        """See ``Wit``."""
        self._record.cut(turn, heard)

    def undo(self, turn: int) -> None:
        """See ``Wit``."""
        self._record.undo(turn)

    def _heard(self, sentence: Sentence) -> Heard:
        """``sentence`` with the silence after which the thinker answers it, if it does."""
        words, sounds = tuple(sentence.words.split()[-_MOST_WORDS:]), sentence.sounds[-_MOST_WORDS:]
        asked = self._record.asked
        if asked is not None and (asked[0].words, asked[0].sounds) == (words, sounds) and not asked[0].over and (
                asked[1].speaks or asked[0].silent_ms == _SETTLED_MS[-1]):
            return asked[0]
        found = (heard for ms in _SETTLED_MS
                 if self._record.ask(heard := Heard(words, ms, sounds=sounds)).speaks)
        return next(found, Heard(words, _SETTLED_MS[-1], sounds=sounds))


def takes(call: Call) -> bool:
    """Whether there is such a skill, and its slots are filled as it takes them."""
    return call.name in HANDLERS and grammar().fits(Parse(call.name, call.slots))
