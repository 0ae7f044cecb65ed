"""Sentences in flite's voices, as a caller's microphone would bring them: 16 kHz, a little noise, silence around."""

from __future__ import annotations

import subprocess
import wave
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from duologue.engine.messages import INPUT_RATE, Pcm, Unit
from duologue.engine.models.embedded.ear import PRE_ROLL_MS
from duologue.engine.models.embedded.lexicon import pronunciations

UNIT_MS = 80
_SAMPLES = INPUT_RATE * UNIT_MS // 1000
_SILENT = 200
"""Magnitude below which flite is silent."""
_NOISE = 8.0
"""Root mean square of the noise: about 72 dB below full scale."""
_LOUD = 150.0
"""Root mean square from which a unit counts as speech."""
_AFTER_MS = 1280
"""Silence after a sentence: longer than any patience."""


def speakable(words: Sequence[str]) -> bool:
    """Whether the recogniser can know all of ``words``, and flite, which spells what has no vowel, can say them."""
    return all(word in _known() and set(word) & set("aeiouy") for word in words)


@cache
def _known() -> frozenset[str]:
    return frozenset(pronunciations())


def spoken(voice: str, text: str) -> Pcm:
    """``text`` said by flite's ``voice``, 16 kHz, without the silence around it.

    Raises ``CalledProcessError`` where flite has no such voice.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "speech.wav"
        subprocess.run(["flite", "-voice", voice, "-t", text, str(path)], check=True)
        with wave.open(str(path)) as file:
            pcm = np.frombuffer(file.readframes(file.getnframes()), np.int16)
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) > _SILENT)
    return pcm[loud[0]:loud[-1] + 1]


def units(pcm: Pcm, seed: int) -> Iterator[Unit]:
    """``pcm`` in units, silence and noise around it, with the speech probability that its loudness makes likely."""
    noise = np.random.default_rng(seed)
    before, after = (np.zeros(INPUT_RATE * ms // 1000, np.int16) for ms in (PRE_ROLL_MS, _AFTER_MS))
    whole = np.concatenate([before, pcm, after, np.zeros(-len(pcm) % _SAMPLES, np.int16)])
    for index in range(len(whole) // _SAMPLES):
        sound = whole[index * _SAMPLES:(index + 1) * _SAMPLES].astype(np.float64)
        loud = float(np.sqrt(np.mean(sound**2))) > _LOUD
        noisy = (sound + noise.normal(0, _NOISE, len(sound))).clip(-32768, 32767).astype(np.int16)
        yield Unit(index, noisy, 0.9 if loud else 0.05, 0, 0)
