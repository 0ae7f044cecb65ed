"""Train the thinker: ``python -m training.thinker.train OUT`` reads OUT/shard-*.npz, writes OUT/thinker.pt.

It goes on where it stopped, also with another end: how fast it learns depends on the share of the time that is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from training import command, device
from training.course import Course, Recent
from training.thinker import vectors, vocabulary
from training.thinker.model import FILE, NAME, WIDTH, Taught, Thinker
from training.thinker.pool import LONG, MEANINGS, NAMES, SHORT
from training.thinker.rows import ANSWER, WORD
from training.thinker.steppers import Steppers

CPU_MINUTES = 220.0
_TOKENS = 3072
"""Of a step's batch, at most."""
_WORD_WEIGHT = 0.07
"""What a caller's word counts against a token of an answer: what callers say is worth knowing, not guessing."""
_MEANING_WEIGHT = 0.1
"""What the meaning of a sentence counts, against an answer's token as well."""
_CHECKPOINT_S = 60.0
_WARM_UP = 30

Rows = Mapping[str, NDArray[Any]]


def shards(folder: Path) -> Iterator[Path]:
    """The shards one after another without end; new ones are taken in."""
    number = 0
    while True:
        found = sorted(folder.glob("shard-*.npz"))
        if not found:
            raise FileNotFoundError(f"{folder} has no shards: run python -m training.thinker.pool {folder}")
        yield found[number % len(found)]
        number += 1


def batches(file: Path, chosen: np.random.Generator) -> Iterator[Rows]:
    """The rows of one shard in batches, in an order drawn at random."""
    with np.load(file) as held:
        whole = {length: {name: held[f"{length}.{name}"] for name in NAMES} for length in (SHORT, LONG)}
        table = {MEANINGS: held[MEANINGS]}
    places = list[tuple[int, NDArray[np.int64]]]()
    for length, arrays in whole.items():
        size = _TOKENS // length
        order = chosen.permutation(len(arrays["tokens"]))
        places += [(length, order[first:first + size]) for first in range(0, len(order), size)]
    for place in chosen.permutation(len(places)):
        length, of = places[place]
        yield {name: values[of] for name, values in whole[length].items()} | table


def losses(taught: Taught, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    """Mean cross-entropy of the answers' tokens and of the callers' words, and mean squared error of the meanings."""
    read = states(taught.thinker, rows)
    answers, words = (_missed(taught.thinker, read, rows, kind) for kind in (ANSWER, WORD))
    meant = rows["meant"].ravel()
    meanings = device.tensor(rows[MEANINGS][meant[meant > 0]].astype(np.float32))
    told = taught.meaning(_at(read, meant > 0))
    return answers, words, mse_loss(told.float(), meanings)


def states(thinker: Thinker, rows: Rows) -> Tensor:
    """The thinker's states, row by row."""
    tokens, positions, parts, sees = (device.tensor(rows[name].astype(np.int64)) for name in NAMES[:4])
    length = tokens.shape[1]
    visible = ((sees[:, :, None] >> parts[:, None, :]) & 1).bool() & torch.ones(length, length).tril().bool()
    return thinker.states(tokens, positions, visible)


def _missed(thinker: Thinker, read: Tensor, rows: Rows, kind: int) -> Tensor:
    """Mean cross-entropy of the tokens of one ``kind``, told from the states ``read`` before them."""
    chosen = rows["learnt"][:, 1:] == kind
    wanted = device.tensor(rows["tokens"][:, 1:][chosen].astype(np.int64))
    return cross_entropy(thinker.logits(_at(read[:, :-1], chosen)).float(), wanted)


def _at(states: Tensor, chosen: NDArray[np.bool_]) -> Tensor:
    """The states that are ``chosen``, one after another; chosen here, so that no device is waited for."""
    return states.flatten(0, 1)[device.tensor(np.flatnonzero(chosen))]


def train(folder: Path, minutes: float) -> None:
    """Train for ``minutes`` in all, those of earlier runs counted (``Course``)."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    taught = Taught(len(Vocabulary.read(folder / vocabulary.FILE)))
    first, known = vectors.embeddings(folder, WIDTH)
    with torch.no_grad():
        taught.thinker.model.embed_tokens.weight[known] = first.to(taught.meaning.weight.device)
    stepper = Steppers(taught, known, list(taught.meaning.parameters()))
    course = Course(folder / FILE, NAME, taught, stepper, minutes, warm_up=_WARM_UP, save_s=_CHECKPOINT_S)
    print(f"{sum(parameter.numel() for parameter in taught.thinker.parameters()) / 1e6:.2f} M parameters", flush=True)
    chosen, recent = np.random.default_rng(course.step), Recent("answers", "words", "meanings")
    for rows in (rows for shard in shards(folder) for rows in batches(shard, chosen)):
        if not course.goes_on():
            break
        with device.mixed():
            answers, words, meanings = losses(taught, rows)
        (answers + _WORD_WEIGHT * words + _MEANING_WEIGHT * meanings).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(taught.parameters(), 1.0)
        stepper.step(course.share)
        recent.add(answers.item(), words.item(), meanings.item())
        course.stepped(recent.means)
    course.end(recent.means())


def main() -> None:
    """Train as the command line says."""
    command.run("training.thinker.train", __doc__, train, CPU_MINUTES)


if __name__ == "__main__":
    main()
