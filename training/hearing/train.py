"""Train the encoder: ``python -m training.hearing.train OUT`` reads OUT/speech-*.npz, writes OUT/hearing.pt.

It goes on where it stopped, also with another end: how fast it learns depends on the share of the time that is gone.
Each frame's class is learnt by itself (cross-entropy): when every word ends is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.hearing.shape import BLANK
from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training import command, device
from training.course import Course, Recent
from training.hearing import corpus
from training.hearing.corpus import Sentence
from training.hearing.model import Encoder
from training.hearing.rows import PHONES, Row, row
from training.thinker.steppers import Steppers

CPU_MINUTES = 19.0
_BATCH = 12
"""Rows of a step: 96 s of speech."""
_BLANK_WEIGHT = 0.4
"""What a frame without a piece counts against one with: there are six times as many."""
_PHONES_COUNT = 0.3
_CHECKPOINT_S = 60.0
_WARM_UP = 30
_NEW_EVERY = 25
"""Steps after which new shards are looked for."""


class Speech:
    """The sentences of all shards there are, without end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: set[Path] = set()
        self._sentences: list[Sentence] = []
        self.look()

    def look(self) -> None:
        """Take new shards in; raises FileNotFoundError where there are none."""
        for file in sorted(self._folder.glob("speech-*.npz")):
            if file not in self._read:
                self._sentences += corpus.read(file)
                self._read.add(file)
        if not self._read:
            raise FileNotFoundError(f"{self._folder} has no speech: run python -m training.hearing.corpus "
                                    f"{self._folder}")

    def rows(self, pieces: Pieces, random: np.random.Generator) -> Iterator[Row]:
        """Rows without end, of sentences drawn at random."""
        while True:
            drawn = [self._sentences[place] for place in random.integers(len(self._sentences), size=10)]
            yield row(drawn, pieces, random)


def losses(encoder: Encoder, rows: list[Row]) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy of the frames' classes, and of their phones."""
    frames, classes, phones = (device.tensor(np.stack([getattr(each, name) for each in rows]))
                               for name in ("frames", "classes", "phones"))
    heard, told = encoder(frames)
    weights = torch.ones(heard.shape[-1])
    weights[BLANK] = _BLANK_WEIGHT
    return (cross_entropy(heard.float().flatten(0, 1), classes.flatten(), weights),
            cross_entropy(told.float().flatten(0, 1), phones.flatten()))


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` in all, those of earlier runs counted (``Course``)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    speech, pieces = Speech(folder), Pieces.of(Vocabulary.read(FOLDER / "tokenizer.json"))
    encoder = Encoder(len(pieces), len(PHONES))
    print(f"{sum(parameter.numel() for parameter in encoder.parameters()) / 1e6:.2f} M parameters", flush=True)
    stepper = Steppers(encoder)
    course = Course(folder / "hearing.pt", "hearing", encoder, stepper, minutes, warm_up=_WARM_UP, save_s=_CHECKPOINT_S)
    rows = speech.rows(pieces, np.random.default_rng(course.step))
    recent = Recent("pieces", "phones")
    while course.goes_on():
        if course.step % _NEW_EVERY == 0:
            speech.look()
        with device.mixed():
            heard, told = losses(encoder, [next(rows) for _ in range(_BATCH)])
        (heard + _PHONES_COUNT * told).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        stepper.step(course.share)
        recent.add(heard.item(), told.item())
        course.stepped(recent.means)
    course.end(recent.means())


def main() -> None:
    """Train as the command line says."""
    command.run("training.hearing.train", __doc__, train, CPU_MINUTES)


if __name__ == "__main__":
    main()
