"""Sessions that are heard together against what the released code, which hears one at a time, hears of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions, load
from duologue.engine.models.minicpmo.hearing.ear import Ear, Hearing
from tests.engine.models.minicpmo.golden.inputs import RATE, SEED, caller

LATE = 7
"""Units by which the second session is behind the first."""


def test_sessions_heard_in_one_batch_hear_the_released_rows_each_at_its_own_place() -> None:
    """They are first, and start anew, at different times."""
    golden: NDArray[np.float32] = np.load(Path(__file__).parents[1] / "golden" / "hearing.npz")["rows"]
    checkpoint = load(CheckpointOptions(load_format="random", seed=SEED))
    ear = Ear(checkpoint.config, checkpoint.tensors("hearing"), torch.device("cpu"), torch.float32)
    first, second = Hearing(ear), Hearing(ear)
    units = caller().reshape(-1, RATE)
    for i in range(LATE):
        first.hear(units[i])
    for i in range(LATE, len(units)):
        ahead, behind = ear.hear([first, second], [units[i], units[i - LATE]])
        for found, place in ((ahead, i), (behind, i - LATE)):
            np.testing.assert_allclose(found.rows, golden[place], rtol=1e-4, atol=2e-5, err_msg=f"unit {place}")
