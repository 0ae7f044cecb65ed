"""The time of day and the date, in words."""

from __future__ import annotations

from datetime import datetime

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots
from duologue.engine.models.embedded.dialogue.numbers import say_whole

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")
_ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth",
             "nine": "ninth", "twelve": "twelfth"}


def ordinal(number: int) -> str:
    """"twenty first"."""
    *before, last = say_whole(number).split()
    if last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last = _ORDINALS.get(last, last + "th")
    return " ".join((*before, last))


def say_year(year: int) -> str:
    """"twenty twenty six", "two thousand and five"."""
    high, low = divmod(year, 100)
    if low < 10:
        return say_whole(year)
    return f"{say_whole(high)} {say_whole(low)}"


def say_time(now: datetime) -> str:
    """"half past two in the afternoon"."""
    hour = say_whole((now.hour - 1) % 12 + 1)
    if now.hour < 12:
        part = "in the morning"
    else:
        part = "in the afternoon" if now.hour < 18 else "in the evening"
    if now.minute == 0:
        return f"{hour} o'clock {part}"
    if now.minute == 30:
        return f"half past {hour} {part}"
    minutes = ("oh " if now.minute < 10 else "") + say_whole(now.minute)
    return f"{hour} {minutes} {part}"


def time(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """The time of day."""
    return f"It is {say_time(context.now)}.", memory


def date(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """Day, month and year."""
    now = context.now
    return (f"Today is {_DAYS[now.weekday()]}, {_MONTHS[now.month - 1]} the {ordinal(now.day)}, "
            f"{say_year(now.year)}."), memory


def weekday(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """The day of the week."""
    return f"It is {_DAYS[context.now.weekday()]}.", memory
