"""Who decides that a caller has finished, and that one who speaks over a reply takes the floor."""

from __future__ import annotations

from typing import Protocol

from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.policy import is_agreement
from duologue.engine.models.embedded.endpoint import Patience
from duologue.engine.models.embedded.overlap import LONG_MS, Verdict, judge
from duologue.engine.models.embedded.utterance import Utterance


class TurnTaking(Protocol):
    """One session's."""

    def finished(self, utterance: Utterance) -> bool:
        """Whether the caller, who is silent or speaks, has said all of it."""

    def judge(self, utterance: Utterance, *, adapted: bool) -> Verdict:
        """What speech over a reply is, as far as it is known; ``adapted``: an echo canceller has had time enough."""


class Ruled:
    """By how complete a sentence of the grammar is, and by how long the speech is."""

    def __init__(self, dialogue: Dialogue, patience: Patience) -> None:
        self._dialogue = dialogue
        self._patience = patience

    def finished(self, utterance: Utterance) -> bool:
        """See ``TurnTaking``."""
        return utterance.silent_ms >= self._patience.needed_ms(utterance.understanding)

    def judge(self, utterance: Utterance, *, adapted: bool) -> Verdict:
        """See ``TurnTaking``."""
        understanding = utterance.understanding
        if self._dialogue.memory.offer and is_agreement(understanding.sentence.words):
            return Verdict.TAKES if utterance.ended else Verdict.UNDECIDED
        return judge(understanding, utterance.spoken_ms, over=utterance.ended, settled=utterance.settled,
                     long_ms=LONG_MS if adapted else 2 * LONG_MS)
