"""What is left of a reply that is cut."""

from __future__ import annotations

import numpy as np

from duologue.engine.models.duplex import random
from duologue.engine.models.duplex.format import Format, SamplingOptions
from duologue.engine.models.duplex.replies import Reply
from duologue.engine.models.duplex.words import Text, Words

SHAPE = random.shape("tiny")
T = SHAPE.config.tokens
TOKENIZER = random.tokenizer(SHAPE)
FORM = Format(SHAPE.config, TOKENIZER, SamplingOptions())
NOTHING = np.zeros(4, np.float32)
END = (T.turn_eos, T.chunk_eos)


def reply(*units: tuple[int, str]) -> Reply:
    """A reply spoken in these entries."""
    made = Reply(0, 0, Text(Words(TOKENIZER)), NOTHING)
    for entry, text in units:
        answer = FORM.answer(open=entry != units[0][0])
        answer.take((T.speak, *FORM.encode(text), T.chunk_eos))
        made.add(entry, answer, {})
    return made


def cut(heard: int) -> dict[int, tuple[int, ...]]:
    return dict(reply((10, "ab"), (11, "cdefg"), (13, "hi")).cut(FORM, heard))


def spoken(text: str) -> tuple[int, ...]:
    return (T.speak, *FORM.encode(text), *END)


def test_a_cut_reply_is_what_was_heard_of_it() -> None:
    # Its last unit with words that were heard ends the reply, and the units after it listen.
    assert cut(9) == {13: spoken("hi")}
    assert cut(7) == {11: spoken("cdefg"), 13: (T.listen,)}
    assert cut(5) == {11: spoken("cde"), 13: (T.listen,)}
    assert cut(2) == {10: spoken("ab"), 11: (T.listen,), 13: (T.listen,)}
    assert cut(0) == {10: (T.listen,), 11: (T.listen,), 13: (T.listen,)}


def test_a_unit_without_a_word_is_kept_only_before_what_was_heard() -> None:
    made = reply((1, "ab"), (2, ""), (3, "cd"), (4, ""))
    assert dict(made.cut(FORM, 2)) == {1: spoken("ab"), 2: (T.listen,), 3: (T.listen,), 4: (T.listen,)}
    assert dict(made.cut(FORM, 4)) == {3: spoken("cd"), 4: (T.listen,)}
