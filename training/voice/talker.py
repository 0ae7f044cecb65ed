"""Train the talker: ``python -m training.voice.talker OUT`` reads OUT/corpus.npz, OUT/codec.pt, writes OUT/talker.pt.

It goes on where it stopped. What the talker reads of its own codes is disturbed in training, so that it does not
stumble over its own mistakes when it speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS
from training import command
from training.course import Course, set_rate
from training.voice import corpus, sequence
from training.voice.codec import VALIDATION, Codec, features
from training.voice.model import Talker
from training.voice.sequence import NOTHING

CPU_MINUTES = 170.0
_ROWS = 2000
"""Rows of a step's batch."""
_LEARNING_RATE = 2e-3
_NEAR, _ANY = 0.25, 0.04
"""Shares of frames read with digits off by one, and with random ones."""
_ADVANCE_WEIGHT = 2.0
_CHECKPOINT_S = 180.0


class Item:
    """One utterance's stream as tensors."""

    def __init__(self, said: corpus.Utterance, codec: Codec) -> None:
        with torch.inference_mode():
            codes = codec.digits(torch.from_numpy(features(said.vectors))[None])[0].round().long()
        rows = sequence.build(said, len(codes))
        self.symbol = torch.from_numpy(rows.symbol)
        self.pointer = torch.from_numpy(np.stack([rows.phone, rows.following, rows.held], -1))
        self.advance = torch.from_numpy(rows.advance)
        self.digits = torch.zeros(len(rows.symbol), DIGITS, dtype=torch.long)
        spoken = torch.from_numpy(rows.frame) >= 0
        self.digits[spoken] = codes[torch.from_numpy(rows.frame)[spoken]].clone()

    def __len__(self) -> int:
        return len(self.symbol)


def batches(items: Sequence[Item], chosen: np.random.Generator) -> Iterator[list[Item]]:
    """Batches of streams of about the same length, without end."""
    while True:
        order = chosen.permutation(len(items))
        epoch = list[list[Item]]()
        for first in range(0, len(order), 600):
            batch = list[Item]()
            for item in sorted((items[i] for i in order[first:first + 600]), key=len):
                if batch and len(item) * (len(batch) + 1) > _ROWS:
                    epoch.append(batch)
                    batch = []
                batch.append(item)
            epoch.append(batch)
        for i in chosen.permutation(len(epoch)):
            yield epoch[i]


def losses(talker: Talker, batch: Sequence[Item], *, disturbed: bool) -> tuple[Tensor, Tensor]:
    """Cross-entropy of a frame's digits, summed over them, and of the pointer's moves."""
    pad = nn.utils.rnn.pad_sequence
    symbol = pad([item.symbol for item in batch], batch_first=True)
    digits = pad([item.digits for item in batch], batch_first=True)
    pointer = pad([item.pointer for item in batch], batch_first=True)
    advance = pad([item.advance for item in batch], batch_first=True, padding_value=NOTHING)
    read = digits
    if disturbed:
        luck = torch.rand(symbol.shape)[..., None]
        near = (digits + torch.randint(-1, 2, digits.shape)).clamp(0, LEVELS - 1)
        read = torch.where(luck < _NEAR, near, digits)
        read = torch.where(luck > 1 - _ANY, torch.randint(LEVELS, digits.shape), read)
    states = talker.states(symbol, read, pointer)
    spoken = symbol[:, 1:] == NOTHING
    logits = talker.digit_logits(states[:, :-1][spoken], pointer[:, 1:][spoken], digits[:, 1:][spoken])
    codes = cross_entropy(logits.flatten(0, 1), digits[:, 1:][spoken].flatten()) * DIGITS
    moves = cross_entropy(talker.advance(states[advance >= 0]), advance[advance >= 0])
    return codes, moves


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` of CPU time in all, those of earlier runs counted."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    codec = Codec()
    codec.load_state_dict(torch.load(folder / "codec.pt", weights_only=True)["codec"])
    items = [Item(said, codec.eval()) for said in corpus.read(folder)]
    validation, items = items[:VALIDATION], items[VALIDATION:]
    talker = Talker()
    optimizer = torch.optim.AdamW(talker.parameters(), _LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.05,
                                  fused=True)
    course = Course(folder / "talker.pt", "talker", talker, optimizer, minutes, warm_up=60, save_s=_CHECKPOINT_S)
    print(f"{sum(map(len, items)) / len(items):.0f} rows an utterance, "
          f"{sum(p.numel() for p in talker.parameters()) / 1e6:.2f} M parameters", flush=True)
    for batch in batches(items, np.random.default_rng(course.step)):
        if not course.goes_on():
            break
        set_rate(optimizer, _LEARNING_RATE * course.share)
        with torch.autocast("cpu", torch.bfloat16):
            codes, moves = losses(talker, batch, disturbed=True)
        optimizer.zero_grad()
        (codes + _ADVANCE_WEIGHT * moves).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(talker.parameters(), 1.0)
        optimizer.step()
        course.stepped(lambda: validate(talker, validation))
    course.end(validate(talker, validation))


@torch.inference_mode()
def validate(talker: Talker, items: Sequence[Item]) -> str:
    """Cross-entropies over utterances the talker was not trained on."""
    found = [losses(talker, items[first:first + 10], disturbed=False) for first in range(0, len(items), 10)]
    return (f"codes {np.mean([float(codes) for codes, _ in found]):.3f}, "
            f"moves {np.mean([float(moves) for _, moves in found]):.4f}")


def main() -> None:
    """Train as the command line says."""
    command.run("training.voice.talker", __doc__, train, CPU_MINUTES)


if __name__ == "__main__":
    main()
