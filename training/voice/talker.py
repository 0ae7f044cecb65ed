"""Train the talker: ``python -m training.voice.talker OUT`` reads OUT/corpus.npz, OUT/codec.pt, writes OUT/talker.pt.

It goes on where it stopped. What the talker reads of its own codes is disturbed in training, so that it does not
stumble over its own mistakes when it speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from duologue.engine.models.embedded.voice.network import DIGITS, LEVELS
from training import command, device
from training.course import Course, set_rate, weights
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
    """One utterance's stream: int64 arrays, a row for each of its places."""

    def __init__(self, said: corpus.Utterance, codec: Codec) -> None:
        with torch.inference_mode():
            codes = codec.digits(device.tensor(features(said.vectors))[None])[0].round().long().cpu().numpy()
        rows = sequence.build(said, len(codes))
        self.symbol = rows.symbol
        self.pointer = np.stack([rows.phone, rows.following, rows.held], -1)
        self.advance = rows.advance
        self.digits = np.zeros((len(rows.symbol), DIGITS), np.int64)
        spoken = rows.frame >= 0
        self.digits[spoken] = codes[rows.frame[spoken]]

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
    symbols, advance = _padded([item.symbol for item in batch]), _padded([item.advance for item in batch], NOTHING)
    symbol, digits, pointer = (device.tensor(array) for array in (
        symbols, _padded([item.digits for item in batch]), _padded([item.pointer for item in batch])))
    read = digits
    if disturbed:
        luck = torch.rand(symbol.shape)[..., None]
        near = (digits + torch.randint(-1, 2, digits.shape)).clamp(0, LEVELS - 1)
        read = torch.where(luck < _NEAR, near, digits)
        read = torch.where(luck > 1 - _ANY, torch.randint(LEVELS, digits.shape), read)
    states = talker.states(symbol, read, pointer)
    # Places are found here, so that no device is waited for.
    spoken = device.tensor(np.flatnonzero(symbols[:, 1:] == NOTHING))
    before, at, wanted = (rows.flatten(0, 1)[spoken] for rows in (states[:, :-1], pointer[:, 1:], digits[:, 1:]))
    codes = cross_entropy(talker.digit_logits(before, at, wanted).flatten(0, 1), wanted.flatten()) * DIGITS
    moved = device.tensor(np.flatnonzero(advance >= 0))
    moves = cross_entropy(talker.advance(states.flatten(0, 1)[moved]), device.tensor(advance[advance >= 0]))
    return codes, moves


def _padded(rows: Sequence[NDArray[np.int64]], fill: int = 0) -> NDArray[np.int64]:
    """``rows``, (length, ...) each, as one array, the shorter ones filled up."""
    whole = np.full((len(rows), max(map(len, rows)), *rows[0].shape[1:]), fill, np.int64)
    for place, row in enumerate(rows):
        whole[place, :len(row)] = row
    return whole


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` in all, those of earlier runs counted (``Course``)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    codec = Codec()
    codec.load_state_dict(weights(folder / "codec.pt", "codec"))
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
        with device.mixed():
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
