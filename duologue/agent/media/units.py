"""Cuts the caller's samples into units. The clock is the number of samples and nothing else."""

from __future__ import annotations

from collections import deque

import numpy as np

from duologue.engine import INPUT_RATE, Pcm, Unit

MAX_AHEAD = 10 * INPUT_RATE
"""How far, in samples, speech may be noted ahead of the audio it belongs to."""


class Unitizer:
    """Collects samples at 16 kHz until there are ``unit_samples`` of them, again and again.

    What it gives depends on the stream alone, not on how the stream was cut into pushes. It holds less than
    one unit.
    """

    def __init__(self, unit_samples: int) -> None:
        if unit_samples <= 0:
            raise ValueError(f"a unit has at least one sample, not {unit_samples}")
        self._unit_samples = unit_samples
        self._pcm = np.empty(unit_samples, np.int16)
        self._filled = self._concealed = self._audible = 0
        self._index = 0
        self._windows: deque[tuple[int, float]] = deque()  # where a window ends, its speech probability
        self._speech = 0.0  # of the last window that has ended

    @property
    def position(self) -> int:
        """Samples taken so far."""
        return self._index * self._unit_samples + self._filled

    def note_speech(self, probability: float, upto_sample: int) -> None:
        """Say how likely speech is in the window that ends before sample ``upto_sample`` of the stream.

        Windows come in order, each before the push of its last sample. Raises ``ValueError`` otherwise, or
        for a window further ahead than ``MAX_AHEAD``.
        """
        earliest = self._windows[-1][0] if self._windows else self.position
        if not earliest < upto_sample <= self.position + MAX_AHEAD:
            raise ValueError(f"a window that ends at sample {upto_sample} cannot follow one at {earliest}")
        self._windows.append((upto_sample, probability))

    def push(self, pcm: Pcm, concealed: int = 0, agent_audible: int = 0) -> list[Unit]:
        """Take samples, int16, shape (n,), and give the units they complete.

        The first ``concealed`` of them were made up, the first ``agent_audible`` captured while the reply was
        being played. A unit's speech is the highest probability of the windows that end in it; of a unit in
        which none ends, that of the last one before.
        """
        units: list[Unit] = []
        taken = 0
        while taken < pcm.size:
            count = min(pcm.size - taken, self._unit_samples - self._filled)
            self._pcm[self._filled:self._filled + count] = pcm[taken:taken + count]
            self._filled += count
            self._concealed += min(max(concealed - taken, 0), count)
            self._audible += min(max(agent_audible - taken, 0), count)
            taken += count
            if self._filled == self._unit_samples:
                units.append(self._finish())
        return units

    def _finish(self) -> Unit:
        end = self.position
        ended: list[float] = []
        while self._windows and self._windows[0][0] <= end:
            ended.append(self._windows.popleft()[1])
        unit = Unit(self._index, self._pcm.copy(), max(ended, default=self._speech), self._concealed,
                    self._audible)
        self._speech = ended[-1] if ended else self._speech
        self._index += 1
        self._filled = self._concealed = self._audible = 0
        return unit
