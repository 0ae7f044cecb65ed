"""The golden values as the tests read them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions
from tests.engine.models.minicpmo.golden.inputs import SEED

SOURCE = CheckpointOptions(load_format="random", seed=SEED)
"""The checkpoint they were made with."""

Array = npt.NDArray[Any]


@cache
def values(file: str) -> dict[str, Array]:
    """The arrays of one file."""
    return dict(np.load(Path(__file__).with_name(f"{file}.npz")))


def parts(file: str, name: str) -> list[Array]:
    """An array that was joined of parts of different lengths, cut again."""
    arrays = values(file)
    return np.split(arrays[name], arrays[f"{name}_counts"].cumsum()[:-1])
