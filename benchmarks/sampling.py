"""What a step's choice of tokens costs by the number of sessions: MiniCPM-o 4.5's rules over its vocabulary.

    python -m benchmarks.sampling [--device cuda] [--steps 200]

Prints, for each number of sessions, milliseconds of a step by the rules of a unit's answer, and of a bare greedy choice
over the same logits beside it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from duologue.engine.runners.base import Sampling, Swap
from duologue.engine.runners.sampling import choose

VOCABULARY = 151_748
FORBIDDEN = 6966
"""Ids that the released tokenizer lists as never to be said."""
TEXT = 151_643
"""Ids of text are below this."""


def rules(session: int) -> Sampling:
    """An answer's, by MiniCPM-o 4.5's defaults, after a long session."""
    text = np.random.default_rng(session).integers(0, TEXT, 512)
    return Sampling(max_tokens=20, temperature=0.7, top_k=20, top_p=0.8, repetition_penalty=1.05, repetition="divide",
                    repetition_window=512, recent=tuple(int(id) for id in text), forbidden=_FORBIDDEN,
                    damp=((151_717, 1.1),), tried=151_718, at_budget=151_718,
                    swap=Swap(151_705, 151_703, 151_717, at_first=False), seed=session)


def measure(step: Callable[[], object], steps: int) -> list[float]:
    """Milliseconds of each of so many steps; each ends with its tokens on the CPU."""
    for _ in range(10):
        step()
    taken = []
    for _ in range(steps):
        begun = time.perf_counter()
        step()
        taken.append(1000 * (time.perf_counter() - begun))
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    args = parser.parse_args()
    print(f"{'sessions':>8} {'rules p50':>10} {'p99':>7} {'greedy p50':>11} {'p99':>7}  (ms)")
    for sessions in (1, 4, 16, 64):
        logits = torch.randn(sessions, VOCABULARY, device=args.device) * 3
        ours, greedy = (measure(partial(choose, logits, samplings, [(1, 2, 3)] * sessions), args.steps)
                        for samplings in ([rules(each) for each in range(sessions)],
                                          [Sampling(max_tokens=20)] * sessions))
        figures = [float(np.percentile(each, share)) for each in (ours, greedy) for share in (50, 99)]
        print("{:8d} {:10.2f} {:7.2f} {:11.2f} {:7.2f}".format(sessions, *figures))


_FORBIDDEN = tuple(range(144_677, 144_677 + FORBIDDEN))

if __name__ == "__main__":
    main()
