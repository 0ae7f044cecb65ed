"""What is made of a recogniser's hypotheses: of two decoders by what they agree on, of one as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from duologue.engine.models.embedded.agreement import NOTHING, Understanding, understand
from duologue.engine.models.embedded.dialogue.policy import Sentence
from duologue.engine.models.embedded.lexicon import Lexicon
from duologue.engine.models.embedded.recogniser import Hypothesis, Recogniser


class Reader(Protocol):
    """For one kind of recogniser."""

    def partial(self, recogniser: Any) -> Sequence[Hypothesis]:
        """What it has heard so far."""

    def finish(self, recogniser: Any) -> Sequence[Hypothesis]:
        """End its utterance; what it has heard."""

    def understand(self, heard: Sequence[Hypothesis], speech_end: int) -> Understanding:
        """What was said before frame ``speech_end``; what comes later was made out of silence."""


class Agreed:
    """Of a free language model and a grammar."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def partial(self, recogniser: Recogniser) -> Sequence[Hypothesis]:
        """See ``Reader``."""
        return recogniser.partial()

    def finish(self, recogniser: Recogniser) -> Sequence[Hypothesis]:
        """See ``Reader``: the free words, then the grammar's, as a whole sentence and as its beginning."""
        _, partial = recogniser.partial()
        return (*recogniser.finish(), partial)

    def understand(self, heard: Sequence[Hypothesis], speech_end: int) -> Understanding:
        """See ``Reader``."""
        return understand(heard[0], heard[1:], speech_end, self._lexicon)


class Plain:
    """Of one decoder, whose words are taken as they are."""

    def partial(self, recogniser: Any) -> Sequence[Hypothesis]:
        """See ``Reader``."""
        return (recogniser.partial(),)

    def finish(self, recogniser: Any) -> Sequence[Hypothesis]:
        """See ``Reader``."""
        return (recogniser.finish(),)

    def understand(self, heard: Sequence[Hypothesis], speech_end: int) -> Understanding:
        """See ``Reader``."""
        words = [word.word for word in heard[0].words if word.middle <= speech_end]
        return Understanding(Sentence(" ".join(words)), NOTHING.reading) if words else NOTHING
