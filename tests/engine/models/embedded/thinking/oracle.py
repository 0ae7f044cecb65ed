"""A thinker that knows the grammar by heart: a runner that answers a sequence by reading it.

It stands in for trained weights where a test is about what is around them.
"""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np

from duologue.engine.models.embedded.dialogue.intents import INTENTS, grammar
from duologue.engine.models.embedded.dialogue.policy import is_backchannel
from duologue.engine.models.embedded.thinking.format import (
    MARKS,
    PAUSES_MS,
    Call,
    Format,
    call_token,
    slot_token,
)
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from duologue.engine.runners.base import Capacity, Finish, Generated, Rows, Segment, Tokens

REFUSAL = "Sorry, I do not know that."
_SLOTS = ("number", "text", "word", "name", "task", "span", "left", "right", "operator", "share", "whole", "start",
          "stop", "step", "source", "target")


def vocabulary() -> Vocabulary:
    """Letters, marks, and the special tokens."""
    special = [*MARKS, *map(call_token, INTENTS), *map(slot_token, _SLOTS)]
    letters = string.ascii_letters + "'-"
    tokens = [*special, *letters, *(f"##{letter}" for letter in letters), *".,?!:", *string.digits]
    return Vocabulary({token: id for id, token in enumerate(tokens)}, special)


class Oracle:
    """A ``Runner`` that keeps each session's tokens, and answers the unit at their end."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self.sequences: dict[str, list[int]] = {}
        self.asked = 0
        self.fails = False
        self.fixed: tuple[int, ...] = ()
        """The answer to everything, if it is not empty."""
        self.likely = 1.0
        """Each token's probability, but the first's."""
        self.texts: list[str] = []
        """What slots of the last answer could be pieces of."""
        self._told: list[Generated] = []
        self.capacity = Capacity(100_000, 16, 4096, 8, len(form.vocabulary), len(form.vocabulary))

    def keepable(self, session: str, positions: int) -> int:
        """All of it."""
        return min(positions, len(self.sequences.get(session, ())))

    def submit(self, segment: Segment) -> None:
        """Answer at once."""
        sequence = self.sequences.setdefault(segment.session, [])
        del sequence[segment.keep:]
        for piece in segment.pieces:
            assert isinstance(piece, Tokens)
            sequence += piece.ids
        self.asked += 1
        copy = segment.sampling.copy if segment.sampling is not None else None
        texts = copy.texts if copy is not None else ()
        self.texts = [self._form.vocabulary.decode([id for word in text for id in word]) for text in texts]
        if self.fails:
            self._told.append(Generated(segment.session, finish=Finish.FAILED, detail="it was told to fail"))
            return
        answer = self.fixed or self.answer(sequence)
        sequence += answer[:-1]
        self._told.append(Generated(segment.session, answer, len(sequence) - len(answer) + 1, self._states(answer),
                                    Finish.STOP, len(sequence)))

    def _states(self, answer: tuple[int, ...]) -> Rows:
        """Rows that are logits by ``table``: of every other token the same, which leaves each ``likely`` as it is."""
        size = len(self._form.vocabulary)
        logits = np.zeros((len(answer) - 1, size), np.float32)
        logits[range(len(answer) - 1), answer[1:]] = 40 if self.likely == 1 else np.log(
            self.likely / (1 - self.likely) * (size - 1))
        return logits

    @property
    def table(self) -> Rows:
        """The embeddings to which its states are logits."""
        return np.eye(len(self._form.vocabulary), dtype=np.float32)

    def answer(self, sequence: Sequence[int]) -> tuple[int, ...]:
        """What the grammar makes of the last unit."""
        vocabulary, form = self._form.vocabulary, self._form
        names = [vocabulary.name(id) for id in sequence]
        start = len(names) - 1 - names[::-1].index("<unit>")
        unit = names[start + 1:]
        words = vocabulary.decode(sequence[start + 1:]).split()
        silent = next((ms for ms in PAUSES_MS if f"<pause_{ms}>" in unit), 0)
        reading = grammar().read(words)
        if "<over>" in unit:
            nods = is_backchannel(" ".join(words)) or (reading.parse is None and "<long>" not in unit)
            return form.keeping() if nods else form.listening()
        if reading.parse is not None and reading.parse.intent not in ("fragment", "backchannel") and silent >= 160:
            return form.calling(Call(reading.parse.intent, dict(reading.parse.slots)))
        if words and silent >= 1440 and not is_backchannel(" ".join(words)):
            return form.told(None, REFUSAL)
        return form.listening()

    def interrupt(self, session: str) -> None:
        """Nothing is ever under way."""

    def drop(self, session: str) -> None:
        """Forget it."""
        self.sequences.pop(session, None)
        self._told = [told for told in self._told if told.session != session]

    def step(self) -> Sequence[Generated]:
        """What came of the segments."""
        told, self._told = self._told, []
        return told

    @property
    def ready(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self._told)

    @property
    def wake_fd(self) -> None:
        """It never works by itself."""
        return

    def close(self) -> None:
        """Nothing to free."""
