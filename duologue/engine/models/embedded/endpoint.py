"""When a caller's turn is over: the more complete what was said, the less silence it takes.

Silence is what the voice activity detector calls so; silero's speech lasts some 80 ms longer than the sound.
"""

from __future__ import annotations

from dataclasses import dataclass

from duologue.engine.models.embedded.agreement import Understanding
from duologue.engine.models.embedded.dialogue.policy import Trust


@dataclass(frozen=True, slots=True)
class Patience:
    """Silence in ms after which an utterance is over."""

    whole_ms: int = 160
    """After a sentence that nothing can be added to."""
    extensible_ms: int = 240
    """After a whole sentence that could go on: "count to twenty" ("five")."""
    loose_ms: int = 560
    """After free speech: "repeat after me ..."."""
    unknown_ms: int = 720
    """Where not all of it was understood."""
    incomplete_ms: int = 1200
    """After the beginning of a sentence: "remind me to"."""
    nothing_ms: int = 480
    """Where there was no word at all."""

    def needed_ms(self, understanding: Understanding) -> int:
        """The silence that ends an utterance understood so."""
        if not understanding.words:
            return self.nothing_ms
        if understanding.sentence.trust is not Trust.WHOLE:
            return self.unknown_ms
        if understanding.reading.incomplete:
            return self.incomplete_ms
        if understanding.loose:
            return self.loose_ms
        return self.extensible_ms if understanding.reading.open else self.whole_ms
