"""The light runner's arithmetic on numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from duologue.engine.models.duplex.config import DecoderConfig
from duologue.engine.runners.base import Rows, Tokens
from duologue.engine.runners.numpy.choosing import Chooser
from duologue.engine.runners.numpy.decoder import Decoder, Span
from duologue.engine.runners.numpy.kv import KvArrays
from duologue.engine.runners.progress import Progress
from duologue.engine.runners.stepped import SteppedOptions, SteppedRunner, Work


class NumpyOptions(SteppedOptions):
    """What the runner may take of the machine; weights, KV and activations are float32."""


class NumpyRunner(SteppedRunner[KvArrays, Rows]):
    """A ``Runner``. Tensors come by the names that ``Decoder`` takes, float32; others are passed over.

    Raises ``ConfigError`` when a tensor is missing or misshapen, or ``options`` do not fit the model.
    """

    def __init__(self, config: DecoderConfig, tensors: Mapping[str, Rows], options: NumpyOptions) -> None:
        super().__init__(config, options, KvArrays(
            config.num_hidden_layers, config.num_key_value_heads, config.head_dim, options.positions, options.block))
        self._decoder = Decoder(config, tensors, options.max_length)
        self._choosers: WeakKeyDictionary[Progress, Chooser] = WeakKeyDictionary()

    def _forward(self, works: Sequence[Work]) -> Rows:
        ids: list[int] = []
        given: list[tuple[int, Rows]] = []
        for piece in (piece for work in works for piece in work.pieces):
            if isinstance(piece, Tokens):
                ids += piece.ids
            else:
                given.append((len(ids), piece.rows))
                ids += [0] * len(piece)
        rows = self._decoder.embed(ids)
        for first, embedded in given:
            rows[first:first + len(embedded)] = embedded
        return self._decoder.forward(rows, [position for work in works for position in work.positions],
                                     [Span(work.rows, self._kv.cache(work.session)) for work in works])

    def _finite(self, states: Rows) -> list[bool]:
        finite: list[bool] = np.logical_and.reduce(np.isfinite(states), axis=-1).tolist()
        return finite

    def _choose(self, works: Sequence[Work], states: Rows) -> list[int]:
        logits = self._decoder.logits(states[[work.rows.stop - 1 for work in works]])
        return [self._chooser(work.progress).choose(row, work.progress.tokens)
                for work, row in zip(works, logits, strict=True)]

    def _rows(self, states: Rows, rows: slice) -> Rows:
        return states[rows].copy()

    def _chooser(self, progress: Progress) -> Chooser:
        chooser = self._choosers.get(progress)
        if chooser is None:
            chooser = self._choosers[progress] = Chooser(progress.sampling)
        return chooser
