"""What a small thinker costs a CPU core: the light runner in numpy beside the torch runner, on random weights.

    python -m benchmarks.light_runner [--steps 200] [--length 400]

The size is the embedded thinker's: 6 layers x 256, 4 heads of 64 (2 of keys), 768 inside, a vocabulary of 2000. Both
runners hold the same sessions and take turns, each in one thread. Figures are of CPU time, so that other work on the
machine shows less.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from benchmarks.report import Table
from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.models.duplex.layout import decoder_tensors
from duologue.engine.runners.base import Rows, Runner, Sampling, Segment, Tokens
from duologue.engine.runners.numpy import NumpyOptions, NumpyRunner
from duologue.engine.runners.numpy.blas import one_thread
from duologue.engine.runners.torch import TorchOptions, TorchRunner

CONFIG = DecoderConfig(vocab_size=2000, hidden_size=256, intermediate_size=768, num_hidden_layers=6,
                       num_attention_heads=4, num_key_value_heads=2, head_dim=64, max_position_embeddings=2048,
                       tie_word_embeddings=True)
UNIT, ANSWER = 12, 6
"""Positions of a unit that are new, and tokens of its answer."""


def weights() -> dict[str, Rows]:
    """Random ones that keep activations near 1."""
    draw = np.random.default_rng(0)
    return {name: np.ones(shape, np.float32) if len(shape) == 1
            else draw.standard_normal(shape, np.float32) / np.float32(shape[1] ** 0.5)
            for name, shape in decoder_tensors(CONFIG).items()}


def ids(count: int, seed: int) -> Tokens:
    return Tokens(tuple(np.random.default_rng(seed).integers(CONFIG.vocab_size, size=count).tolist()))


def finish(runner: Runner, *segments: Segment) -> list[float]:
    """CPU milliseconds of each step until all ``segments`` are over."""
    for segment in segments:
        runner.submit(segment)
    steps = []
    while runner.ready:
        begun = time.process_time()
        runner.step()
        steps.append(1000 * (time.process_time() - begun))
    return steps


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--length", type=int, default=400, help="positions that a session has before")
    args = parser.parse_args()
    torch.set_num_threads(1)
    one_thread()
    made = weights()
    runners: dict[str, Runner] = {
        "numpy": NumpyRunner(CONFIG, made, NumpyOptions(max_length=2048)),
        "torch": TorchRunner(CONFIG, [(name, torch.from_numpy(tensor)) for name, tensor in made.items()],
                             TorchOptions(max_length=2048))}
    for runner in runners.values():
        for session in "abcd":
            finish(runner, Segment(session, 0, (ids(args.length, ord(session)),), None))
    samples: dict[tuple[str, str], list[float]] = {}

    def note(name: str, kind: str, taken: list[float]) -> None:
        samples.setdefault((name, kind), []).extend(taken)

    answer = Sampling(max_tokens=ANSWER)
    for turn in range(args.steps):
        for kind, runner in runners.items():
            unit = (ids(UNIT, turn),)
            taken = finish(runner, Segment("a", args.length, unit, answer))
            note("one token of one session", kind, taken[1:])
            note(f"a unit: {UNIT} positions and {ANSWER} tokens", kind, [sum(taken)])
            note("16 positions prefilled", kind,
                 finish(runner, Segment("a", args.length, (ids(16, turn),), None)))
            together = finish(runner, *(Segment(session, args.length, unit, answer) for session in "abcd"))
            note("one token of each of four sessions", kind, together[1:])
    millions = sum(map(np.size, made.values())) / 1e6
    table = Table(f"CPU time of steps of a decoder of {millions:.1f} M parameters, behind "
                  f"{args.length} positions")
    for (name, kind), taken in sorted(samples.items()):
        table.add(f"{name}, {kind}", taken)
    table.print()


if __name__ == "__main__":
    main()
