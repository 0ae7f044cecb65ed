"""What is answered: a sentence as it was understood, and the memory, to a reply and the memory after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from duologue.engine.models.embedded.dialogue import (
    clock,
    counting,
    measures,
    recall,
    reminders,
    smalltalk,
    stories,
    sums,
)
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.memory import Context, Handler, Memory
from duologue.engine.models.embedded.dialogue.numbers import spelled_out
from duologue.engine.models.embedded.dialogue.templates import Parse
from duologue.engine.models.embedded.sound import Sounds

HANDLERS: dict[str, Handler] = {
    "greet": smalltalk.greet, "farewell": smalltalk.farewell, "thanks": smalltalk.thanks,
    "how_are_you": smalltalk.how_are_you, "who_are_you": smalltalk.who_are_you, "help": smalltalk.help_,
    "present": smalltalk.present, "set_name": smalltalk.set_name, "get_name": smalltalk.get_name,
    "time": clock.time, "date": clock.date, "weekday": clock.weekday,
    "percent": sums.percent, "square": sums.square, "root": sums.root, "arithmetic": sums.arithmetic,
    "further": sums.further, "count": counting.count, "count_down": counting.count_down,
    "spell": counting.spell, "repeat": smalltalk.repeat, "dice": stories.dice, "coin": stories.coin,
    "convert": measures.convert, "remind": reminders.remind, "reminders": reminders.listing,
    "forget": reminders.forget, "story": stories.story, "joke": stories.joke, "stop": smalltalk.stop,
    "go_on": recall.go_on, "slower": smalltalk.slower, "faster": smalltalk.faster,
    "normal_speed": smalltalk.normal_speed, "again": recall.again, "last_said": recall.last_said,
    "last_number": recall.last_said_number, "last_heard": recall.last_heard, "yes": smalltalk.yes,
    "no": smalltalk.no, "backchannel": smalltalk.backchannel,
}

_AGREEMENT = frozenset(("yes", "okay", "ok", "yeah", "sure", "right", "alright", "yep", "all right"))
_OPEN_PLACES = frozenset(("repeat", "remind", "spell", "set_name"))
"""Intents with a place for any words."""
_QUESTIONS = (
    ("remind me to", "What shall I remind you of?"), ("remind me", "Remind you of what, and when?"),
    ("remind", "Remind you of what, and when?"),
    ("count down from", "From which number?"), ("count from", "From which number, and to which?"),
    ("count", "Up to which number?"), ("spell", "Which word shall I spell?"),
    ("repeat after me", "What shall I repeat?"), ("say after me", "What shall I repeat?"),
    ("convert", "Convert what, and to which unit?"), ("how many", "How many what?"),
    ("my name is", "What is your name?"), ("set a", "For how long?"),
)
_FIRST_WORDS = frozenset(("count", "convert", "spell", "calculate", "remind"))
"""Words that by themselves show what is wanted."""


class Trust(Enum):
    """How well a sentence was understood."""

    WHOLE = "whole"
    HALF = "half"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the caller said. ``words`` are lower case; only those in ``caught`` are sure if trust is HALF.

    ``sounds`` are those of its words, where it was heard by the neural encoder.
    """

    words: str
    trust: Trust = Trust.WHOLE
    caught: str = ""
    sounds: Sounds = ()

    def saying(self, words: Sequence[str]) -> Sentence:
        """The same with other ``words``, of which nothing but the text is known."""
        text = " ".join(words)
        return self if text == self.words else replace(self, words=text, sounds=())


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply; ``intent`` is what it answers, ``call`` how a trained thinker understood it."""

    text: str
    intent: str
    rate: float
    call: Parse | None = None


def typed(text: str) -> Sentence:
    """A sentence from typed text: lower case, numbers and signs in words."""
    text = text.lower().replace("’", "'")
    text = re.sub(r"(?<=[\d\s)])\s*[*×x]\s*(?=-?\d)", " times ", text)
    text = re.sub(r"(?<=\d)\s*[/÷]\s*(?=-?\d)", " divided by ", text)
    text = re.sub(r"(?<=\d)\s*\+\s*(?=-?\d)", " plus ", text)
    text = re.sub(r"(?<=\d)\s*[-−–]\s*(?=-?\d)", " minus ", text)
    text = re.sub(r"(?<=\d)\s*%", " percent ", text)
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(?<=[a-z])-(?=[a-z])", " ", text).replace("mm hm", "mm-hm").replace("uh huh", "uh-huh")
    tokens = re.findall(r"-?\d+(?:\.\d+)?|[a-z]+(?:['-][a-z]+)*", text)
    words = " ".join(spelled_out(token) for token in tokens)
    reading = grammar().read(words.split())
    return Sentence(words, Trust.WHOLE if reading.parse or reading.open else Trust.NONE)


def is_backchannel(words: str) -> bool:
    """Whether ``words`` only show that the caller listens."""
    parse = grammar().read(words.split()).parse
    return parse is not None and (parse.intent == "backchannel" or words in _AGREEMENT)


def is_agreement(words: str) -> bool:
    """Whether ``words`` are a yes to an offer."""
    return words in _AGREEMENT


def joined(earlier: Sentence | None, later: Sentence) -> Sentence:
    """What to answer when ``later`` was said before ``earlier`` was answered."""
    if earlier is None:
        return later
    both = f"{earlier.words} {later.words}"
    if later.trust is earlier.trust is Trust.WHOLE and grammar().read(both.split()).parse is not None:
        return Sentence(both)
    if is_backchannel(later.words) or (earlier.trust is Trust.WHOLE and later.trust is not Trust.WHOLE):
        return earlier
    return later


def respond(memory: Memory, sentence: Sentence, context: Context) -> tuple[Answer | None, Memory]:
    """The answer to ``sentence``, or None where there is nothing to say."""
    words = sentence.words
    parse = _understood(memory, sentence)
    noted = memory.hearing(words) if words else memory
    if parse is None:
        return _missed(noted, sentence, context)
    if parse.intent == "backchannel" and memory.offer and words in _AGREEMENT:
        parse = Parse("yes", {})
    if parse.intent == "yes" and memory.offer:
        parse = Parse(memory.offer, {})
    # What only shows that the caller listens is nothing that "what did I say" asks for.
    noted = memory if parse.intent == "backchannel" else replace(noted, pending="", offer="", missed=0)
    text, after = HANDLERS[parse.intent](parse.slots, noted, context)
    return _answer(text, parse.intent, after), after


def _answer(text: str, intent: str, memory: Memory) -> Answer | None:
    return Answer(text, intent, memory.rate) if text else None


def _understood(memory: Memory, sentence: Sentence) -> Parse | None:
    """The intent of ``sentence``, alone or as the end of a sentence begun before."""
    words = sentence.words.split()
    reading = grammar().read(words)
    alone = reading.parse if sentence.trust is Trust.WHOLE else None
    if alone is not None and alone.intent != "fragment":
        return alone
    if memory.pending:
        for link in ([], ["in"], ["to"]):
            joined = grammar().read([*memory.pending.split(), *link, *words]).parse
            # What was not trusted may fill a place for any words, and nothing else.
            if joined is not None and (sentence.trust is Trust.WHOLE or joined.intent in _OPEN_PLACES):
                return joined
    return None


def _missed(memory: Memory, sentence: Sentence, context: Context) -> tuple[Answer | None, Memory]:
    """Asks back."""
    known = sentence.words if sentence.trust is Trust.WHOLE else sentence.caught
    begun = f"{memory.pending} {known}".strip()
    if known and not grammar().read(begun.split()).incomplete:
        begun = known
    # One word, "now", could be the courtesy before anything.
    if begun in _FIRST_WORDS or (len(begun.split()) > 1 and grammar().read(begun.split()).incomplete):
        memory = replace(memory, pending=begun, missed=0)
        return _answer(_question(begun), "ask_back", memory), memory
    memory = replace(memory, pending="", missed=memory.missed + 1)
    example = smalltalk.EXAMPLES[(memory.missed + context.random.randrange(len(smalltalk.EXAMPLES)))
                                 % len(smalltalk.EXAMPLES)]
    if known:
        text = f"I only understood: {known}. Could you say the whole of it again?"
    elif memory.missed == 1:
        text = context.random.choice(("Sorry, I did not understand that.", "Sorry, I did not get that.")) \
            + f" You could say, for example: {example}."
    elif memory.missed == 2:
        text = f"I still do not understand. I only know a few things. Try: {example}."
    else:
        text = "That is beyond me, I am afraid. Say help, and I will tell you what I can do."
    return _answer(text, "ask_back", memory), memory


def _question(begun: str) -> str:
    """What is missing in a sentence that has only begun."""
    words = re.sub(r"^(?:please|(?:can|could|would|will) you(?: please)?) ", "", begun)
    if words.startswith("remind me to "):
        return "When? Say, for example: in ten seconds."
    for start, question in _QUESTIONS:
        if words == start or (words.startswith(start) and start in ("count", "convert", "how many", "set a")):
            return question
    last = words.split()[-1]
    if last in ("plus", "minus", "times", "by", "of", "to", "from", "in"):
        return f"{words[:1].upper()}{words[1:]} what?"
    return f"I heard: {words}. And then?"
