"""The encoder: frames of speech to what words' pieces they end, in steps of one size.

The same arithmetic as ``training/hearing/model.py``. A step's arrays always have the same shapes, so that what is heard
does not depend on how the samples came, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from duologue.engine.messages import Pcm
from duologue.engine.models.embedded.hearing import features
from duologue.engine.models.embedded.hearing.features import FRAME, OVERLAP, Floats
from duologue.engine.models.embedded.hearing.shape import DILATIONS, KERNEL, WIDTH
from duologue.engine.models.embedded.voice.layers import Linear, Norm, gelu

STEP = 2
"""Frames computed at once: a unit of 80 ms."""


class Block:
    """A dilated depthwise convolution over time and two layers over channels."""

    def __init__(self, weights: Mapping[str, Floats], name: str, dilation: int) -> None:
        self._taps, self._bias = weights[f"{name}.taps"], weights[f"{name}.bias"]
        self._norm = Norm(weights, f"{name}.norm")
        self._up, self._down = Linear(weights, f"{name}.up"), Linear(weights, f"{name}.down")
        self._dilation = dilation
        self.before = (KERNEL - 1) * dilation
        """Frames that it looks back."""

    def __call__(self, x: Floats) -> Floats:
        """What is added to the last frames of ``x``, (before + n, WIDTH) to (n, WIDTH)."""
        count = len(x) - self.before
        y = self._bias
        for place, tap in enumerate(self._taps):
            start = place * self._dilation
            y = y + x[start:start + count] * tap
        added: Floats = self._down(gelu(self._up(self._norm(y))))
        return added


class Encoder:
    """The weights, and what is done with them; streams share one."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """``weights`` has the names of ``training.hearing.model.Encoder``; raises ``KeyError`` for one that lacks."""
        self.bank = features.filters()
        self._first = Linear(weights, "first")
        self.blocks = [Block(weights, f"blocks.{place}", dilation) for place, dilation in enumerate(DILATIONS)]
        self._norm = Norm(weights, "norm")
        self._out, self._bias = np.ascontiguousarray(weights["embeddings.weight"].T), weights["bias"]

    def step(self, frames: Floats, past: list[Floats]) -> Floats:
        """Probabilities (n, classes) of frames (n, FRAME_WIDTH); ``past`` is each block's, and moves on."""
        x = self._first(frames)
        for place, block in enumerate(self.blocks):
            whole = np.concatenate([past[place], x])
            past[place] = whole[len(x):]
            x = x + block(whole)
        logits = self._norm(x) @ self._out + self._bias
        shares = np.exp(logits - logits.max(-1, keepdims=True))
        probabilities: Floats = shares / shares.sum(-1, keepdims=True)
        return probabilities


class Stream:
    """One utterance."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._past = [np.zeros((block.before, WIDTH), np.float32) for block in encoder.blocks]
        self._sound: NDArray[np.int16] = np.zeros(OVERLAP, np.int16)

    def push(self, pcm: Pcm) -> Iterator[Floats]:
        """Probabilities (classes,) of each frame that the next samples (16 kHz) complete a step with."""
        self._sound = np.concatenate([self._sound, pcm])
        while len(self._sound) >= OVERLAP + STEP * FRAME:
            sound = features.scaled(self._sound[:OVERLAP + STEP * FRAME])
            self._sound = self._sound[STEP * FRAME:]
            yield from self._encoder.step(features.frames(sound, self._encoder.bank), self._past)
