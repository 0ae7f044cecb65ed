"""Stories, jokes and games of chance."""

from __future__ import annotations

from dataclasses import replace

from duologue.engine.models.embedded.dialogue.memory import Context, Memory, Outcome, Slots, sentence
from duologue.engine.models.embedded.dialogue.numbers import read_amount, say_whole

STORIES = (
    "Once there was a lighthouse keeper called Edda, who had a clock that was always late. "
    "Every evening the clock was ten minutes behind the sun, so she lit the lamp ten minutes after everybody "
    "else along the coast. "
    "The fishermen laughed at her, but they were fond of the late light, and they gave it a name. "
    "They called it the second evening. "
    "One autumn night a fog came in, so thick that the gulls walked home. "
    "All the lamps burned, but in the fog they looked the same, and a small boat could not tell one bay from "
    "another. "
    "The captain, an old woman with a cold pipe, turned off the engine and waited. "
    "One light after the other came up, pale and round. "
    "And then, ten minutes later, there was one more. "
    "There is Edda, said the captain, and she steered straight home. "
    "In the morning the fishermen brought a present. "
    "It was a new clock, and they had set it ten minutes late.",

    "A little robot worked in a library, and its work was to put books back on their shelves. "
    "It knew every number on every shelf, but it had never opened a book. "
    "One day a girl came in from the rain and asked, which is the best one? "
    "The robot thought about it all afternoon. "
    "It could say which book was the heaviest, and which one was the most blue, but best was not a number. "
    "So that night, when the doors were locked, it opened the first book on the first shelf and began to read. "
    "It read about whales, and kings, and the making of cheese. "
    "It read until the snow had come and gone. "
    "When the girl came back in spring, the robot rolled up to her very fast. "
    "I have read all of them, it said, and I have found the answer. "
    "The best one is the one that somebody is waiting to tell you about. "
    "Then they sat down by the window, and the robot told her about the whales.",

    "On a hill above a village stood a pear tree that talked, but only on Thursdays. "
    "People walked up with their questions and stood in a line. "
    "Should I sell the cow, they asked, or will it be a cold winter? "
    "And the tree always gave the same answer. "
    "Come back in a week, it said. "
    "They grumbled, and they walked down again, and on the way they talked with one another. "
    "By the next Thursday most of them knew what to do about the cow. "
    "One summer a stranger climbed the hill and asked the tree if it was not ashamed. "
    "You know nothing at all, said the stranger. "
    "That is true, said the tree, I am only a pear tree. "
    "But look at the path. "
    "When I was young it was a path for one. "
    "Now it is wide enough for the whole village. "
    "The stranger looked at it for a long time, took a pear, and came back in a week.",
)

_JOKES = (
    "I tried to count the jokes I know. The sum came out very low.",
    "Why did the microphone leave the party? Nobody would let it finish.",
    "I would tell you a joke about silence, but you would think the line was dead.",
)


def story(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The next story."""
    return STORIES[memory.stories % len(STORIES)], replace(memory, stories=memory.stories + 1)


def joke(_slots: Slots, memory: Memory, _context: Context) -> Outcome:
    """The next joke."""
    return _JOKES[memory.jokes % len(_JOKES)], replace(memory, jokes=memory.jokes + 1)


def dice(slots: Slots, memory: Memory, context: Context) -> Outcome:
    """One die or up to nine, and their sum."""
    asked = read_amount(slots["number"].split()) if "number" in slots else None
    if asked is not None:
        number = int(asked)
    else:
        number = 2 if context.words.endswith("dice") and " a " not in context.words else 1
    rolled = [context.random.randint(1, 6) for _ in range(max(1, min(number, 9)))]
    if len(rolled) == 1:
        return sentence(f"you rolled a {say_whole(rolled[0])}"), memory
    *most, last = [say_whole(value) for value in rolled]
    return f"You rolled {', '.join(most)} and {last}. Together that is {say_whole(sum(rolled))}.", memory


def coin(_slots: Slots, memory: Memory, context: Context) -> Outcome:
    """Heads or tails."""
    return f"It is {context.random.choice(('heads', 'tails'))}.", memory
