"""Words of tools' names in what was heard of free speech: the language model hears one word in five as another.

What the recogniser listens for is made once for all sessions, and no tool is in it. But the words that ask for a
session's tools are known: in a sentence that nothing else made sense of, what sounds nearly like one of them is taken
for it. With 36 questions for four tools in flite's four voices, 13 calls became 19.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from duologue.engine.models.embedded.agreement import distance
from duologue.engine.models.embedded.dialogue.skills import Skill, singular
from duologue.engine.models.embedded.lexicon import Sounds

_NEAR = 0.2
"""Distance per phone up to which a word is taken for another: "whether" for "weather"."""
_NEAR_ANOTHER = 0.34
"""The same where another word of the tool's name was heard: "turn on the line" for "turn on the light"."""
_RUN = 2
"""Words that one may have been heard as."""


def mended(words: Sequence[str], skills: Iterable[Skill], lexicon: Sounds) -> tuple[str, ...]:
    """``words`` with those of the tool's name in place of what sounds like them, where it has all words of one then."""
    found: list[tuple[float, tuple[str, ...]]] = []
    for skill in skills:
        there = skill.words & set(map(singular, words))
        mending, apart = tuple(words), 0.0
        for word in sorted(skill.words - there):
            best = _likest(word, mending, lexicon)
            if best is None or best[0] > (_NEAR_ANOTHER if there else _NEAR):
                break
            apart += best[0]
            mending = (*mending[:best[1]], word, *mending[best[2]:])
        else:
            found.append((apart, mending))
    return min(found, default=(0.0, tuple(words)))[1]


def _likest(word: str, words: Sequence[str], lexicon: Sounds) -> tuple[float, int, int] | None:
    """The run of ``words`` that sounds most like ``word``: distance per phone, beginning and end."""
    sound = lexicon.phones((word,))
    if not sound:
        return None
    runs = ((start, end) for start in range(len(words)) for end in range(start + 1, min(start + _RUN, len(words)) + 1))
    return min(((distance(sound, heard) / max(len(sound), len(heard)), start, end) for start, end in runs
                if (heard := lexicon.phones(words[start:end]))), default=None)
