"""Codes to acoustic vectors, causally, one frame of one stream at a time: so neither chunks nor neighbours count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from duologue.engine.models.embedded.voice.layers import Block, Floats, Linear, Norm
from duologue.engine.models.embedded.voice.network import LEVELS
from duologue.engine.models.embedded.voice_format import FRAME_VECTORS, VECTOR_WIDTH

FEATURES = VECTOR_WIDTH + 1
"""Log f0, filled in where there is none; whether there is one (1 or 0); cepstra; strengths."""


@dataclass(slots=True, eq=False)
class DecoderState:
    """One stream: the inputs each block looks back on, (kernel - 1, width) each."""

    before: list[Floats]


class CodeDecoder:
    """The decoder's weights; streams share one."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """``weights`` has the names of ``training.voice.codec.Codec``; raises ``KeyError`` for one that lacks."""
        self._in, self._out = Linear(weights, "decoder_in"), Linear(weights, "decoder_out")
        count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("decoder."))
        self._blocks = [Block(weights, f"decoder.{i}") for i in range(count)]
        self._norm = Norm(weights, "decoder_norm")
        self._mean, self._scale = weights["mean"], weights["scale"]

    def open(self) -> DecoderState:
        """A new stream."""
        return DecoderState([np.zeros((block.kernel - 1, block.width), np.float32) for block in self._blocks])

    def step(self, state: DecoderState, digits: Floats) -> Floats:
        """Acoustic vectors, (FRAME_VECTORS, VECTOR_WIDTH), of the next frame's digits (DIGITS,)."""
        x = self._in(digits[None] * np.float32(2 / (LEVELS - 1)) - 1)
        for i, block in enumerate(self._blocks):
            seen = np.concatenate([state.before[i], x])
            state.before[i] = seen[1:]
            x = x + block(seen)
        features = self._out(self._norm(x)).reshape(FRAME_VECTORS, FEATURES) * self._scale + self._mean
        vectors = np.empty((FRAME_VECTORS, VECTOR_WIDTH), np.float32)
        vectors[:, 0] = np.where(features[:, 1] > 0.5, np.exp(features[:, 0]), 0)
        vectors[:, 1:] = features[:, 2:]
        return vectors
