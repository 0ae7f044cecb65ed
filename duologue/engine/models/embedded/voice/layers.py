"""The layers of the codec's decoder and of the reader of letters, in numpy (``training.voice.codec.Block``)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_EPSILON = np.float32(1e-5)


def gelu(x: Floats) -> Floats:
    """GELU by tanh (arXiv 1606.08415)."""
    inner = np.float32(np.sqrt(2 / np.pi)) * (x + np.float32(0.044715) * x * x * x)
    y: Floats = np.float32(0.5) * x * (1 + np.tanh(inner))
    return y


class Linear:
    """x W' + b."""

    def __init__(self, weights: Mapping[str, Floats], name: str) -> None:
        self._weight, self._bias = np.ascontiguousarray(weights[f"{name}.weight"].T), weights[f"{name}.bias"]

    def __call__(self, x: Floats) -> Floats:
        """(..., in) to (..., out)."""
        y: Floats = x @ self._weight + self._bias
        return y


class Norm:
    """Layer norm."""

    def __init__(self, weights: Mapping[str, Floats], name: str) -> None:
        self._weight, self._bias = weights[f"{name}.weight"], weights[f"{name}.bias"]

    def __call__(self, x: Floats) -> Floats:
        """(..., width) to the same."""
        centered = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt(np.mean(centered * centered, axis=-1, keepdims=True) + _EPSILON)
        y: Floats = centered / deviation * self._weight + self._bias
        return y


class Block:
    """A depthwise convolution over time and two layers over channels."""

    def __init__(self, weights: Mapping[str, Floats], name: str) -> None:
        self._taps, self._bias = weights[f"{name}.depthwise.weight"][:, 0].T, weights[f"{name}.depthwise.bias"]
        self._norm = Norm(weights, f"{name}.norm")
        self._up, self._down = Linear(weights, f"{name}.up"), Linear(weights, f"{name}.down")
        self.kernel, self.width = self._taps.shape

    def __call__(self, x: Floats) -> Floats:
        """(kernel - 1 + n, width), of which the convolution eats what it needs around, to (n, width)."""
        count = len(x) - self.kernel + 1
        y = sum((x[k:k + count] * tap for k, tap in enumerate(self._taps)), self._bias)
        added: Floats = self._down(gelu(self._up(self._norm(y))))
        return added
