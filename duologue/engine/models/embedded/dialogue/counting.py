"""Counting and spelling."""

from __future__ import annotations

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots
from duologue.engine.models.embedded.dialogue.numbers import read_whole, say_whole

MOST = 200
"""Numbers in one count: about two minutes."""
_ROW = 10
"""Numbers in one breath."""
_NO_NUMBER = "I did not get the number to count to."


def row(numbers: range) -> str:
    """The numbers in words, with a comma after each and a full stop after every tenth."""
    words = [say_whole(number) for number in numbers]
    breaths = [", ".join(words[i:i + _ROW]) for i in range(0, len(words), _ROW)]
    return ", ".join(breaths).capitalize() + "."


def _counted(start: int, stop: int, step: int, memory: Memory) -> Outcome:
    if step < 1:
        return "I cannot count in steps of zero.", memory
    numbers = range(start, stop + 1, step) if stop >= start else range(start, stop - 1, -step)
    if len(numbers) > MOST:
        return "That would take me too long. I can count up to two hundred numbers at a time.", memory
    return row(numbers), memory


def count(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Up, or down where the start is above the stop; from one unless told otherwise."""
    stop = read_whole(slots["stop"].split())
    start = read_whole(slots["start"].split()) if "start" in slots else None
    step = _step(slots["step"].split()) if "step" in slots else 1
    if stop is None or step is None or ("start" in slots and start is None):
        return _NO_NUMBER, memory
    if start is None:
        # "count to one hundred in steps of ten" begins with ten.
        start = max(step, 1) if step <= stop else 1
    return _counted(start, stop, step, memory)


def _step(words: list[str]) -> int | None:
    """A number, also in the plural: "by fives", "by twenties"."""
    *before, last = words or [""]
    singulars = (last, last.removesuffix("s"), last.removesuffix("es"), last.removesuffix("ies") + "y")
    return next((step for word in singulars if (step := read_whole([*before, word])) is not None), None)


def count_down(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Down, to zero unless told otherwise."""
    start = read_whole(slots["start"].split())
    stop = read_whole(slots["stop"].split()) if "stop" in slots else 0
    if start is None or stop is None:
        return _NO_NUMBER, memory
    return _counted(start, min(start, stop), 1, memory)


def spell(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A word letter by letter."""
    words = slots["word"].split()
    if len(words) != 1:
        return "I can only spell one word at a time. Which one?", memory
    letters = [letter.upper() for letter in words[0] if letter.isalpha()]
    if not letters:
        return "I don't know how to spell that.", memory
    return f"{words[0].capitalize()}: {', '.join(letters)}.", memory
