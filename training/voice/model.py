"""The talker: a small Llama-shaped decoder over one stream of phones and codec frames, with a pointer to the phone.

RMSNorm, RoPE, SwiGLU (arXiv 2302.13971). A frame's digits are chosen one after another from the state before it, each
knowing those before (as Qwen3-TTS's code predictor does for its codebooks).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, gelu, silu

from duologue.engine.models.embedded.voice.network import DIGITS, HEADS, LEVELS, ROPE_THETA, WIDTH
from duologue.engine.models.embedded.voice.pointer import END, MAX_HELD
from duologue.engine.models.embedded.voice.symbols import ID, SYMBOLS, WORD
from training import device

LAYERS, FFN = 4, 768


def rope(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines, (positions, head width / 2)."""
    half = WIDTH // HEADS // 2
    angles = positions[:, None].float() * ROPE_THETA ** (-torch.arange(half) / half)
    return angles.cos(), angles.sin()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    low, high = x.chunk(2, -1)
    return torch.cat([low * cos - high * sin, low * sin + high * cos], -1)


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention, (batch, HEADS, rows, head width); on a CPU two products are faster than the fused kernel."""
    later = torch.full((q.shape[2],) * 2, -torch.inf, dtype=q.dtype).triu(1)
    with device.mixed(enabled=False):
        seen: Tensor = ((q * q.shape[-1] ** -0.5) @ k.transpose(2, 3) + later).softmax(-1) @ v
    return seen


class Layer(nn.Module):
    """Attention and a gated feed-forward, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.ffn_norm = nn.RMSNorm(WIDTH, 1e-6), nn.RMSNorm(WIDTH, 1e-6)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate_up, self.down = nn.Linear(WIDTH, 2 * FFN, bias=False), nn.Linear(FFN, WIDTH, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """(batch, rows, WIDTH) to the same; causal."""
        batch, rows, _ = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(batch, rows, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = _attended(_rotate(q, cos, sin).to(v.dtype), _rotate(k, cos, sin).to(v.dtype), v)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, rows, WIDTH))
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
        added: Tensor = self.down(silu(gate) * up)
        return x + added


class Pointer(nn.Module):
    """What a pointer adds: the phone, the one after it, the frames it has been held."""

    def __init__(self) -> None:
        super().__init__()
        self.phone, self.following = nn.Embedding(len(SYMBOLS), WIDTH), nn.Embedding(len(SYMBOLS), WIDTH)
        self.held = nn.Embedding(MAX_HELD + 1, WIDTH)

    def forward(self, phone: Tensor, following: Tensor, held: Tensor) -> Tensor:
        """(...) each, to (..., WIDTH)."""
        summed: Tensor = self.phone(phone) + self.following(following) + self.held(held)
        return summed


class Talker(nn.Module):
    """The decoder and its heads."""

    def __init__(self) -> None:
        super().__init__()
        self.text = nn.Embedding(len(SYMBOLS), WIDTH)
        self.code = nn.Embedding(DIGITS * LEVELS, WIDTH)
        """Row d * LEVELS + v: digit d being v."""
        self.pointer_in, self.pointer_out = Pointer(), Pointer()
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm = nn.RMSNorm(WIDTH, 1e-6)
        self.advance = nn.Linear(WIDTH, END + 1)
        self.digit_mix = nn.Linear(WIDTH, WIDTH)
        self.digit_start = nn.Parameter(torch.zeros(DIGITS, WIDTH))
        self.digit_heads = nn.ModuleList([nn.Linear(WIDTH, LEVELS) for _ in range(DIGITS)])
        self.digit_said = nn.Embedding(DIGITS * LEVELS, WIDTH)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.03 if isinstance(module, nn.Linear) else 0.05)

    def states(self, symbol: Tensor, digits: Tensor, pointer: Tensor) -> Tensor:
        """States (batch, rows, WIDTH) of a stream.

        ``symbol`` (batch, rows) is -1 for codec frames, whose ``digits`` are (batch, rows, DIGITS); ``pointer`` is
        (batch, rows, 3).
        """
        codec = (symbol < 0)[..., None]
        at = self.pointer_in(*pointer.unbind(-1))
        rows = digits + torch.arange(DIGITS) * LEVELS
        frame = embedding_bag(rows.flatten(0, 1), self.code.weight, mode="sum").view_as(at) + at
        x = torch.where(codec, frame, self.text(symbol.clamp(min=0)) + at * (symbol == ID[WORD])[..., None])
        cos, sin = rope(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x, cos, sin)
        normed: Tensor = self.norm(x)
        return normed

    def digit_logits(self, states: Tensor, pointer: Tensor, digits: Tensor) -> Tensor:
        """Logits (frames, DIGITS, LEVELS) of frames from the states before them (frames, WIDTH), given their digits."""
        total = states + self.pointer_out(*pointer.unbind(-1))
        logits = list[Tensor]()
        # One digit at a time, whose (frames, WIDTH) fit a processor's cache, where all at once do not.
        for d, head in enumerate(self.digit_heads):
            logits.append(head(total + gelu(self.digit_mix(total + self.digit_start[d]), approximate="tanh")))
            total = total + self.digit_said(digits[:, d] + d * LEVELS)
        return torch.stack(logits, 1)
