"""Train what reads words that the lexicon lacks: ``python -m training.voice.letters OUT`` writes OUT/letters.pt.

A small convolution network says two slots of phones for each letter (CTC, Graves et al. 2006), so nothing has to be
aligned. Its words are those of ``OUT/lexicon.xz``; those that ``texts`` holds out tell how often it is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import ctc_loss

from duologue.engine.models.embedded.voice.letters import BLANK, LETTERS, SLOTS, collapsed
from duologue.engine.models.embedded.voice.symbols import PHONES
from training import command
from training.course import Course, set_rate
from training.voice import lexicon, texts
from training.voice.codec import Block
from training.voice.edits import distance

CPU_MINUTES = 9.0
WIDTH, BLOCKS, KERNEL = 128, 4, 5
_BATCH = 256
_LEARNING_RATE = 3e-3
_CHECKPOINT_S = 60.0

_Pair = tuple[str, tuple[str, ...]]


class Reader(nn.Module):
    """Letters to phones."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS) * SLOTS, WIDTH)
        """Row l * SLOTS + s: slot s of letter l."""
        self.blocks = nn.ModuleList([Block(WIDTH, KERNEL, causal=False) for _ in range(BLOCKS)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 1 + len(PHONES))
        """Class 0 is no phone."""

    def forward(self, slots: Tensor, present: Tensor) -> Tensor:
        """Logits (batch, slots, 1 + phones) of slots (batch, slots); ``present`` is 0 behind a word's end."""
        mask = present[..., None]
        x = self.letters(slots) * mask
        for block in self.blocks:
            x = block(x) * mask
        logits: Tensor = self.head(self.norm(x))
        return logits


def slots(words: Sequence[str]) -> tuple[Tensor, Tensor]:
    """What ``Reader`` takes for words of ``LETTERS``."""
    rows = [torch.tensor([LETTERS.index(letter) * SLOTS + slot for letter in word for slot in range(SLOTS)])
            for word in words]
    pad = nn.utils.rnn.pad_sequence
    return pad(rows, batch_first=True), pad([torch.ones(len(row)) for row in rows], batch_first=True)


def targets(sounds: Sequence[tuple[str, ...]]) -> tuple[Tensor, Tensor]:
    """Classes of all phones, one word's behind the other's, and the words' lengths."""
    return (torch.tensor([1 + PHONES.index(phone) for sound in sounds for phone in sound]),
            torch.tensor([len(sound) for sound in sounds]))


@torch.inference_mode()
def read(reader: Reader, words: Sequence[str]) -> list[tuple[str, ...]]:
    """The phones of words of ``LETTERS``."""
    said = list[tuple[str, ...]]()
    for first in range(0, len(words), 512):
        part = words[first:first + 512]
        best = reader(*slots(part)).argmax(-1)
        for word, row in zip(part, best.tolist(), strict=True):
            said.append(collapsed(row[:len(word) * SLOTS]))
    return said


def validate(reader: Reader, pairs: Sequence[_Pair]) -> str:
    """Shares of words and phones that are wrong."""
    said = read(reader, [word for word, _ in pairs])
    wrong = sum(got != wanted for got, (_, wanted) in zip(said, pairs, strict=True))
    plain = sum(_plain(got) != _plain(wanted) for got, (_, wanted) in zip(said, pairs, strict=True))
    errors = sum(distance(got, wanted) for got, (_, wanted) in zip(said, pairs, strict=True))
    return (f"words {wrong / len(pairs):.1%} wrong, {plain / len(pairs):.1%} leaving stress aside, "
            f"phones {errors / sum(len(wanted) for _, wanted in pairs):.1%}")


def _plain(phones: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(phone.rstrip("01") for phone in phones)


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` in all, those of earlier runs counted (``Course``)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    held_out = set(texts.words()[1])
    pairs = [(word, phones) for word, phones in lexicon.pronunciations().items()
             if word.islower() and len(word) > 1 and 0 < len(phones) <= SLOTS * len(word)]
    validation = [pair for pair in pairs if pair[0] in held_out]
    pairs = [pair for pair in pairs if pair[0] not in held_out]
    reader = Reader()
    optimizer = torch.optim.AdamW(reader.parameters(), _LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)
    course = Course(folder / "letters.pt", "letters", reader, optimizer, minutes, warm_up=50, save_s=_CHECKPOINT_S)
    chosen = np.random.default_rng(course.step)
    while course.goes_on():
        set_rate(optimizer, _LEARNING_RATE * course.share)
        batch = [pairs[i] for i in chosen.integers(0, len(pairs), _BATCH)]
        where, present = slots([word for word, _ in batch])
        logits = reader(where, present).log_softmax(-1).transpose(0, 1)
        wanted, lengths = targets([phones for _, phones in batch])
        error = ctc_loss(logits, wanted, present.sum(1).long(), lengths, blank=BLANK, zero_infinity=True)
        optimizer.zero_grad()
        error.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
        course.stepped(lambda: validate(reader, validation[:1000]))
    course.end(f"{len(validation)} words held out: {validate(reader, validation)}")


def main() -> None:
    """Train as the command line says."""
    command.run("training.voice.letters", __doc__, train, CPU_MINUTES)


if __name__ == "__main__":
    main()
