"""Whether the voice says what its source says, all of it and once: ``python -m training.voice.warp [--sentences N]``.

Each sentence's acoustic vectors are aligned over time to those of the source (dynamic time warping, no recogniser in
it): what is said twice, or held, has many loud frames on one of the source's; what is left out, or cut off, has many of
the source's on one of its own. Two voices that say the same differ by less than ``LIMIT`` frames. That the measure
would notice is measured too, with sentences damaged as in ``training.voice.align``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.flite import FliteError
from duologue.engine.models.embedded.voice_format import CEPSTRA
from duologue.engine.runners.numpy.blas import one_thread
from training.voice import texts
from training.voice.align import DAMAGE, DAMAGED, SENTENCES, changed
from training.voice.corpus import Speaker
from training.voice.voices import Trained

Floats = NDArray[np.float64]
LIMIT = 15
"""Frames of 10 ms: an unstressed syllable."""
_VECTORS = 2
"""Of 5 ms, in a frame."""
_LOUD = 3.0
"""Nepers below the loudest: softer frames are pauses, which may have any length."""
_ENERGY = 0.3
"""Weight of the energy against a cepstrum."""
_ASIDE = 0.6
"""Price of a frame that has no partner of its own, as a share of its distance; a pair costs 1."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The longest runs of loud frames, in frames."""

    repeated: int
    """Of the voice's, on one frame of the source."""
    skipped: int
    """Of the source's, on one frame of the voice."""

    @property
    def flawed(self) -> bool:
        """Whether something is said twice or not at all."""
        return max(self.repeated, self.skipped) >= LIMIT


def frames(vectors: NDArray[np.float32]) -> Floats:
    """Energy and cepstra, (frames, CEPSTRA), of acoustic vectors (n, VECTOR_WIDTH)."""
    whole = len(vectors) // _VECTORS
    chosen = vectors[:whole * _VECTORS, 1:1 + CEPSTRA].astype(np.float64)
    means: Floats = chosen.reshape(whole, _VECTORS, CEPSTRA).mean(axis=1)
    return means


def compare(got: Floats, wanted: Floats) -> Runs:
    """The runs in the best alignment of ``got`` to ``wanted``, energy first in either."""
    quiet = np.percentile(np.concatenate([got[:, 0], wanted[:, 0]]), 95) - _LOUD
    pairs = aligned(distances(got, wanted))
    loud = [(i, j) for i, j in pairs if got[i, 0] > quiet], [(i, j) for i, j in pairs if wanted[j, 0] > quiet]
    return Runs(_most([j for _, j in loud[0]]), _most([i for i, _ in loud[1]]))


def distances(got: Floats, wanted: Floats) -> Floats:
    """Euclidean, (got, wanted), of their frames."""
    weights = np.ones(CEPSTRA)
    weights[0] = _ENERGY
    apart: Floats = np.linalg.norm((got[:, None] - wanted[None]) * weights, axis=-1)
    return apart


def aligned(apart: Floats) -> list[tuple[int, int]]:
    """The cheapest way through ``apart`` from its first to its last pair, step by step."""
    rows, columns = apart.shape
    cost = np.full((rows + 1, columns + 1), np.inf)
    cost[0, 0] = 0.0
    for total in range(2, rows + columns + 1):
        # A diagonal at once: all that it needs lies on the two before.
        i = np.arange(max(1, total - columns), min(rows, total - 1) + 1)
        j = total - i
        cost[i, j] = _steps(cost, apart, i, j).min(axis=0)
    found, i, j = list[tuple[int, int]](), rows, columns
    while i and j:
        found.append((i - 1, j - 1))
        back = int(_steps(cost, apart, i, j).argmin())
        i, j = i - (back != 2), j - (back != 1)
    return found[::-1]


def _steps(cost: Floats, apart: Floats, i: NDArray[np.int64] | int, j: NDArray[np.int64] | int) -> Floats:
    """What it costs to come to (i, j) with a pair, with a frame of the rows alone, and of the columns alone."""
    here = apart[i - 1, j - 1]
    return np.stack([cost[i - 1, j - 1] + here, cost[i - 1, j] + _ASIDE * here, cost[i, j - 1] + _ASIDE * here])


def _most(places: Sequence[int]) -> int:
    """How often the most frequent one is there."""
    return int(np.bincount(places).max()) if places else 0


class Pair:
    """The voice in the package and its source."""

    def __init__(self) -> None:
        self._voice, self._source = Trained(), Speaker()

    def runs(self, text: str, said: str = "") -> Runs:
        """The runs of ``text``, or of what is ``said`` instead; raises ``FliteError`` where the source is silent."""
        wanted = frames(self._source.say(text).vectors)
        return compare(frames(self._voice.vectors(said or text)), wanted)


def measure(pair: Pair, sentences: Sequence[str]) -> None:
    """Print the sentences that are flawed, and how many they are."""
    found, count = 0, 0
    for text in sentences:
        try:
            runs = pair.runs(text)
        except FliteError:
            continue
        count += 1
        if runs.flawed:
            found += 1
            print(f"  {runs.repeated} frames on one, {runs.skipped} passed at one: {text}", flush=True)
    print(f"{found} of {count} sentences have {LIMIT} frames or more on one or passed at one")


def damaged(pair: Pair, sentences: Sequence[str]) -> None:
    """Print of each kind of damage in how many sentences it was found."""
    for kind, change in DAMAGE.items():
        found, count = 0, 0
        for text, said in changed(sentences, change):
            try:
                found += pair.runs(text, said).flawed
            except FliteError:
                continue
            count += 1
        print(f"{kind}: found in {found} of {count}", flush=True)


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m training.voice.warp", description=__doc__)
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    parser.add_argument("--damaged", type=int, default=DAMAGED)
    arguments = parser.parse_args()
    one_thread()
    pair = Pair()
    damaged(pair, texts.held_out(arguments.damaged))
    measure(pair, texts.held_out(arguments.sentences))


if __name__ == "__main__":
    main()
