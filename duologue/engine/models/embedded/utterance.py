"""Something a caller says, from its first sound to the silence that ends it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.agreement import NOTHING, Understanding


@dataclass(slots=True)
class Utterance:
    """An utterance; ``over_reply`` when it began while the agent spoke."""

    number: int
    first_unit: int
    over_reply: bool
    last_speech: int
    """The last unit with speech."""
    unit_ms: int
    understanding: Understanding = NOTHING
    settled: bool = False
    """Whether the last unit changed nothing in what was understood."""
    granted: bool = False
    """Whether it has the floor, though it began over a reply."""
    ended: bool = False
    spoken_units: int = 0
    silent_units: int = 0
    speech_end: int = 0
    """Samples from the start of its audio to the end of speech."""
    samples: int = 0
    waiting: deque[Pcm] = field(default_factory=deque)
    recogniser: Any = None
    seen: object = None

    @property
    def spoken_ms(self) -> int:
        """Speech so far."""
        return self.spoken_units * self.unit_ms

    @property
    def silent_ms(self) -> int:
        """Silence since the last speech."""
        return self.silent_units * self.unit_ms
