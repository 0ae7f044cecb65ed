"""The caller's samples become units for the model, and what the ear makes of them."""

from __future__ import annotations

from collections.abc import Iterator

from duologue.agent.media.activity import Hint, Offset, Onset, Probability
from duologue.agent.media.units import Unitizer
from duologue.agent.ports import Ear
from duologue.engine import Pcm, Unit


class Hearing:
    """One caller's stream, 16 kHz."""

    def __init__(self, ear: Ear, unit_samples: int) -> None:
        self._ear = ear
        self._unit_samples = unit_samples
        self._unitizer = Unitizer(unit_samples)
        self._speech: dict[int, float] = {}
        """Of each unit that waits for its decision, how likely speech is in it."""

    def voice(self, pcm: Pcm) -> Iterator[Hint | Onset | Offset]:
        """Listen to the next samples, before ``units`` is given them."""
        for heard in self._ear.push(pcm):
            if isinstance(heard, Probability):
                self._unitizer.note_speech(heard.value, heard.upto)
            else:
                yield heard

    def units(self, pcm: Pcm, concealed: int, agent_audible: int) -> list[Unit]:
        """Cut the next samples; see ``Unitizer.push``."""
        units = self._unitizer.push(pcm, concealed, agent_audible)
        self._speech.update({unit.index: unit.speech for unit in units})
        return units

    def decided(self, unit: int) -> float:
        """Forget a unit that has its decision; returns how likely speech was in it."""
        return self._speech.pop(unit, 0.0)

    @property
    def missing(self) -> int:
        """Samples that the open unit lacks; 0 where none is open."""
        return -self._unitizer.position % self._unit_samples
