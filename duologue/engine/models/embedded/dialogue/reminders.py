"""Reminders within the call."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from duologue.engine.models.embedded.dialogue.measures import counted, seconds
from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Reminder, Slots, sentence
from duologue.engine.models.embedded.dialogue.numbers import read_amount

MOST = 20
"""Reminders at a time."""
LONGEST_S = 6 * 3600
"""The furthest time ahead, in seconds."""

_SWAPPED = {"my": "your", "me": "you", "i": "you", "am": "are", "mine": "yours", "myself": "yourself",
            "i'm": "you're", "your": "my", "you": "me", "yourself": "myself"}


def to_caller(words: str) -> str:
    """The caller's words as the agent says them: "call my wife" is "call your wife"."""
    return " ".join(_SWAPPED.get(word, word) for word in words.split())


def remind(slots: Slots, memory: Memory, context: Context) -> Outcome:
    """Note a task and when it is due; without a task it is a timer."""
    if len(memory.reminders) >= MOST:
        return "I have too many reminders already.", memory
    span = slots["span"]
    number = read_amount(slots["number"].split()) if "number" in slots else _article(context.words, span)
    ahead = seconds(number, span) if number is not None else None
    if number is None or ahead is None or ahead <= 0:
        return "I did not get the time.", memory
    delay = float(ahead)
    if delay > LONGEST_S:
        return "That is too far ahead for me. I can remember it for six hours.", memory
    length = _length(number, span)
    task = to_caller(slots.get("task", ""))
    reminder = Reminder(task, length, context.at + delay)
    memory = replace(memory, reminders=(*memory.reminders, reminder))
    if task:
        return sentence(f"okay, in {length} I will remind you to {task}"), memory
    return sentence(f"okay, I will tell you in {length}"), memory


def _article(words: str, span: str) -> Fraction:
    return Fraction(1, 2) if any(f"half {article} {span}" in words for article in ("a", "an")) else Fraction(1)


def _length(number: Fraction, span: str) -> str:
    """"half an hour", "ten seconds"; other parts in the next smaller unit, "fifteen minutes"."""
    if number == Fraction(1, 2):
        return "half " + ("an hour" if span.startswith("hour") else "a " + span.removesuffix("s"))
    if number.denominator != 1 and not span.startswith("second"):
        return _length(60 * number, "minutes" if span.startswith("hour") else "seconds")
    return counted(number, span)


def listing(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """All reminders that wait."""
    if not memory.reminders:
        return "You have no reminders.", memory
    items = []
    for reminder in memory.reminders:
        left = max(1, round(reminder.due - context.at))
        number, span = (Fraction(left), "seconds") if left < 100 else (Fraction(round(left / 60)), "minutes")
        items.append(f"{reminder.task or 'your timer'}, in {counted(number, span)}")
    count = "one reminder" if len(items) == 1 else "these reminders"
    return f"You have {count}: {'; '.join(items)}.", memory


def forget(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Drop all reminders."""
    if not memory.reminders:
        return "You have no reminders.", memory
    return "Okay, I have forgotten your reminders.", replace(memory, reminders=())


def announce(reminder: Reminder) -> str:
    """What is said when ``reminder`` is due."""
    if reminder.task:
        return f"This is your reminder: {reminder.task}."
    return f"Your {reminder.span} {'is' if reminder.span.startswith('one ') else 'are'} over."
