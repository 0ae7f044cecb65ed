"""Where the encoder's weights are, and what of the thinker's it needs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.hearing.encoder import Encoder
from duologue.engine.models.embedded.hearing.features import Floats
from duologue.engine.models.embedded.hearing.listener import Listener
from duologue.engine.models.embedded.hearing.pieces import Pieces
from duologue.engine.models.embedded.thinking.embeddings import embeddings
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from duologue.engine.runners.numpy.blas import one_thread

FILE = Path(__file__).parent.parent / "weights" / "hearing.safetensors"
"""Float16 tensors; the pieces' names, a JSON list, are the metadata ``pieces`` (``training/hearing/export.py``)."""


def load(file: Path) -> tuple[dict[str, Floats], list[str]]:
    """Its tensors, float32, and its pieces' names; raises ``ConfigError`` for a file that is not the encoder's."""
    try:
        with safe_open(file, "np") as held:
            names = json.loads((held.metadata() or {})["pieces"])
            return {name: held.get_tensor(name).astype(np.float32) for name in held.keys()}, names  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise ConfigError(f"hearing: neural needs {file} ({error}): install the package whole, or run "
                          "python -m training.hearing") from None


class Listeners:
    """Makes listeners for the thinker in the stock folder ``thinker``, which all share one encoder.

    This process's numpy has one thread then: a step is small.

    Raises ``ConfigError`` where the encoder's weights or the thinker's embeddings cannot be read, or do not fit.
    """

    def __init__(self, vocabulary: Vocabulary, thinker: Path, file: Path = FILE) -> None:
        one_thread()
        weights, names = load(file)
        self._pieces = Pieces(names, vocabulary)
        self._encoder = Encoder(weights)
        self._table = embeddings(thinker / "model.safetensors")[self._pieces.ids]

    def __call__(self) -> Listener:
        """One more."""
        return Listener(self._encoder, self._pieces, self._table)
