"""Courtesies, and what the agent says about itself and its voice."""

from __future__ import annotations

from dataclasses import replace

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots

_RATES = (0.6, 0.8, 1.0, 1.25, 1.5)
"""The paces that "slower" and "faster" step through."""

EXAMPLES = ("what is seven times six", "count to twenty", "tell me a story", "what time is it", "roll two dice",
            "how many feet are in five meters", "remind me to drink water in ten seconds")


def _called(memory: Memory) -> str:
    return f", {memory.name.capitalize()}" if memory.name else ""


def greet(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """A greeting returned."""
    hello = context.random.choice(("Hello", "Hi"))
    return f"{hello}{_called(memory)}. What can I do for you?", memory


def farewell(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A goodbye returned."""
    return f"Goodbye{_called(memory)}.", memory


def thanks(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """An answer to thanks."""
    return context.random.choice(("You are welcome.", "My pleasure.", "You are very welcome.")), memory


def how_are_you(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """How it is going."""
    return "I am fine, thank you. What can I do for you?", memory


def who_are_you(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Who speaks."""
    return "I am Duologue, a voice program. I listen all the time, and you may interrupt me.", memory


def present(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Yes, somebody is there."""
    return "Yes, I can hear you.", memory


def help_(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """What can be asked."""
    example = context.random.choice(EXAMPLES)
    return ("I can do sums, count, spell words, convert units, tell the time and the date, roll dice, flip a coin, "
            f"remind you of things and tell stories. For example, say: {example}."), memory


def set_name(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The caller's name."""
    name = " ".join(slots["name"].split()[:2])
    return f"Nice to meet you, {name.title()}.", replace(memory, name=name)


def get_name(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The caller's name given back."""
    if not memory.name:
        return "You have not told me your name.", memory
    return f"Your name is {memory.name.title()}.", memory


def repeat(slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The caller's words given back."""
    text = slots["text"]
    return text[:1].upper() + text[1:] + ".", memory


def _at_rate(memory: Memory, rate: float, done: str, already: str) -> Outcome:
    return (already if rate == memory.rate else done), replace(memory, rate=rate)


def slower(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """One step slower, from this reply on."""
    rate = _RATES[max(_RATES.index(memory.rate) - 1, 0)]
    return _at_rate(memory, rate, "Okay, I will speak slower.", "I cannot speak any slower.")


def faster(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """One step faster, from this reply on."""
    rate = _RATES[min(_RATES.index(memory.rate) + 1, len(_RATES) - 1)]
    return _at_rate(memory, rate, "Okay, I will speak faster.", "I cannot speak any faster.")


def normal_speed(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The voice's own pace."""
    return _at_rate(memory, 1.0, "Okay, back to normal.", "This is my normal speed.")


def stop(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A sign that the floor is the caller's."""
    return "Okay.", memory


def yes(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A yes to nothing in particular; one to an offer is taken before."""
    return "Good. What can I do for you?", memory


def no(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """A no."""
    return "Okay.", replace(memory, offer="")


def backchannel(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """Nothing is said to an "mm-hm"."""
    return "", memory
