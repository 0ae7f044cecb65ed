"""Talk about the talk: what was said, again, go on. Only what the caller heard counts as said."""

from __future__ import annotations

import re
from dataclasses import replace

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Said, Slots
from duologue.engine.models.embedded.dialogue.numbers import NUMBER_WORDS, read_number, say_number

_NOTHING = "I have not said anything yet."
_WORD = re.compile(r"[A-Za-z']+|\d+(?:\.\d+)?")
_SENTENCE_END = re.compile(r"[.?!]\s+")
_FEW_WORDS = 10
"""A cut sentence of which no more than this was heard is said again from its start."""


def _heard(memory: Memory) -> list[Said]:
    return [said for said in memory.said if said.heard.strip()]


def last_number(text: str) -> str | None:
    """The last number in ``text``, in words; None where there is none."""
    found: str | None = None
    # A number does not reach over a comma or a full stop.
    for clause in re.split(r"[^\w\s'.]|\.(?!\d)", text.lower()):
        words = _WORD.findall(clause)
        start = 0
        while start < len(words):
            end = next((end for end in range(len(words), start, -1)
                        if read_number(words[start:end]) is not None
                        and (words[start] in NUMBER_WORDS or words[start][0].isdigit() or end - start > 1)),
                       None)
            if end is None:
                start += 1
                continue
            number = read_number(words[start:end])
            assert number is not None
            found, start = say_number(number), end
    return found


def again(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The last reply once more."""
    said = _heard(memory)
    return (said[-1].text if said else _NOTHING), memory


def last_said(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The last sentence that was heard."""
    said = _heard(memory)
    if not said:
        return _NOTHING, memory
    last = _SENTENCE_END.split(said[-1].heard.strip())[-1].strip(" .,;:")
    words = last.split()
    # Of a long count, or a long sentence, the end is what is asked for.
    if len(words) > 2 * _FEW_WORDS:
        last = " ".join(words[-_FEW_WORDS:])
    return f"The last thing I said was: {last}.", memory


def last_said_number(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The last number that was heard."""
    for said in reversed(_heard(memory)):
        number = last_number(said.heard)
        if number is not None:
            return f"The last number I said was {number}.", memory
    return "I have not said any number yet.", memory


def last_heard(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The caller's sentence before this one."""
    # The newest is the question itself.
    if len(memory.caller) < 2:
        return "You have not said anything before.", memory
    return f"You said: {memory.caller[-2]}.", memory


def rest_of(said: Said) -> str:
    """What to say to go on with a reply that was cut.

    A count goes on with the next number, a tale with the sentence that was cut, from its start if only a few
    words of it were heard.
    """
    rest = said.rest.lstrip(" ,.;:!?")
    if not rest or said.intent == "count":
        return rest
    ends = list(_SENTENCE_END.finditer(said.heard))
    begun = said.heard[ends[-1].end():] if ends else said.heard
    if said.heard.rstrip().endswith((".", "?", "!")) or len(begun.split()) > _FEW_WORDS:
        return rest
    return said.text[len(said.heard) - len(begun):]


def go_on(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The rest of the last reply that was cut."""
    for said in reversed(memory.said):
        rest = rest_of(said)
        if rest:
            return rest[:1].upper() + rest[1:], memory
        if said.intent == "story":
            return "That was the end of the story. Would you like another one?", replace(memory, offer="story")
        if said.intent == "count":
            break
    return "There is nothing to go on with. Shall I tell you a story?", replace(memory, offer="story")
