"""The trained talker's network in numpy: one row, or the rows of a word, at a time, with the KV of those before.

The same arithmetic as ``training/voice/model.py``. What is computed together depends on the words alone, never on how
they came, so a reply's codes are the same to the last bit however its text was cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice.layers import gelu

Floats = NDArray[np.float32]

WIDTH, HEADS = 256, 4
DIGITS, LEVELS = 12, 8
ROPE_THETA = 10_000.0
_NORM_EPSILON = np.float32(1e-6)
_HEAD = WIDTH // HEADS
_SCALE = np.arange(LEVELS, dtype=np.float32)
_ROWS = 512
"""Rows a stream has room for at first."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where a codec frame is in the text: the phone it speaks, the one after it, and for how many frames before."""

    phone: int
    following: int
    held: int


@dataclass(slots=True, eq=False)
class Stream:
    """What the network has read: keys and values, (layers, 2, HEADS, room, head width), of ``rows`` rows."""

    cache: Floats
    rows: int = 0


class _Layer:
    def __init__(self, weights: Mapping[str, Floats], name: str) -> None:
        self.attention_norm, self.ffn_norm = (
            weights[f"{name}.{part}.weight"] for part in ("attention_norm", "ffn_norm"))
        self.qkv, self.out, self.gate_up, self.down = (
            np.ascontiguousarray(weights[f"{name}.{part}.weight"].T) for part in ("qkv", "out", "gate_up", "down"))


class Network:
    """The weights, and what is done with them; streams share one."""

    def __init__(self, weights: Mapping[str, Floats]) -> None:
        """``weights`` has the names of ``training.voice.model.Talker``; raises ``KeyError`` for one that lacks."""
        self._text, self._code = weights["text.weight"], weights["code.weight"]
        self._pointers = {
            side: tuple(weights[f"pointer_{side}.{part}.weight"] for part in ("phone", "following", "held"))
            for side in ("in", "out")}
        count = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))
        self._layers = [_Layer(weights, f"layers.{i}") for i in range(count)]
        self._norm = weights["norm.weight"]
        self._advance = weights["advance.weight"], weights["advance.bias"]
        self._mix = np.ascontiguousarray(weights["digit_mix.weight"].T)
        # The mixing layer's bias and each digit's own start come to one vector a digit.
        self._starts = weights["digit_start"] @ self._mix + weights["digit_mix.bias"]
        self._heads = [(weights[f"digit_heads.{i}.weight"], weights[f"digit_heads.{i}.bias"]) for i in range(DIGITS)]
        self._said = weights["digit_said.weight"]
        half = _HEAD // 2
        self._frequencies = ROPE_THETA ** (-np.arange(half) / half)

    def open(self) -> Stream:
        """A stream that has read nothing."""
        return Stream(np.empty((len(self._layers), 2, HEADS, _ROWS, _HEAD), np.float32))

    def read_text(self, stream: Stream, symbols: list[int], position: Position) -> Floats:
        """Read text symbols, of which the last is ``<w>`` with its ``position``; returns the state, (WIDTH,)."""
        rows = self._text[symbols]
        rows[-1] += self._at("in", position)
        return self._read(stream, rows)

    def read_frame(self, stream: Stream, digits: list[int], position: Position) -> Floats:
        """Read a codec frame of DIGITS digits; returns the state, (WIDTH,)."""
        row = self._code[[d * LEVELS + digit for d, digit in enumerate(digits)]].sum(0) + self._at("in", position)
        return self._read(stream, row[None])

    def moves(self, state: Floats) -> Floats:
        """Logits of the pointer's moves behind a state."""
        weight, bias = self._advance
        logits: Floats = weight @ state + bias
        return logits

    def digits(self, state: Floats, position: Position) -> list[int]:
        """The digits of the frame behind a state, one after another: each the level nearest to its mean.

        Levels are steps on a scale, so the mean errs least; of 101 sentences it left 30 words wrong, the likeliest 49.
        """
        total = state + self._at("out", position)
        chosen: list[int] = []
        for d, (weight, bias) in enumerate(self._heads):
            mixed = total + gelu(total @ self._mix + self._starts[d])
            logits = weight @ mixed + bias
            shares = np.exp(logits - logits.max())
            chosen.append(round(float(shares @ _SCALE / shares.sum())))
            total = total + self._said[d * LEVELS + chosen[-1]]
        return chosen

    def _at(self, side: str, position: Position) -> Floats:
        phone, following, held = self._pointers[side]
        row: Floats = phone[position.phone] + following[position.following] + held[position.held]
        return row

    def _read(self, stream: Stream, x: Floats) -> Floats:
        first, behind = stream.rows, stream.rows + len(x)
        if behind > stream.cache.shape[3]:
            stream.cache = np.concatenate([stream.cache, np.empty_like(stream.cache)], axis=3)
        angles = np.arange(first, behind)[:, None] * self._frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        later = np.triu(np.full((len(x), behind), -np.inf, np.float32), first + 1)
        for layer, cache in zip(self._layers, stream.cache, strict=True):
            qkv = (_normed(x, layer.attention_norm) @ layer.qkv).reshape(len(x), 3, HEADS, _HEAD)
            q, k, v = qkv.transpose(1, 2, 0, 3)
            cache[0, :, first:behind], cache[1, :, first:behind] = _rotated(k, cos, sin), v
            keys, values = cache[0, :, :behind], cache[1, :, :behind]
            scores = _rotated(q, cos, sin) @ keys.transpose(0, 2, 1) * np.float32(_HEAD ** -0.5) + later
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            seen: Floats = weights @ values / weights.sum(-1, keepdims=True)
            x = x + seen.transpose(1, 0, 2).reshape(len(x), WIDTH) @ layer.out
            gate, up = np.split(_normed(x, layer.ffn_norm) @ layer.gate_up, 2, axis=-1)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ layer.down
        stream.rows = behind
        state: Floats = _normed(x[-1:], self._norm)[0]
        return state


def _normed(x: Floats, weight: Floats) -> Floats:
    scaled: Floats = x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + _NORM_EPSILON) * weight
    return scaled


def _rotated(x: Floats, cos: Floats, sin: Floats) -> Floats:
    low, high = x[..., :_HEAD // 2], x[..., _HEAD // 2:]
    turned: Floats = np.concatenate([low * cos - high * sin, low * sin + high * cos], axis=-1)
    return turned
