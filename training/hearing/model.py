"""The encoder in torch: causal dilated convolutions over frames; its names are those the run time reads."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear, pad

from duologue.engine.models.embedded.hearing.features import FRAME_WIDTH
from duologue.engine.models.embedded.hearing.shape import DILATIONS, KERNEL, WIDTH

_TOLD_AFTER = 4
"""Blocks after which phones must be known."""


class Block(nn.Module):
    """A depthwise convolution over time and two layers over channels (as ConvNeXt's, arXiv 2201.03545)."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self._dilation = dilation
        self.taps = nn.Parameter(torch.randn(KERNEL, 1, WIDTH) * KERNEL**-0.5)
        self.bias = nn.Parameter(torch.zeros(WIDTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        nn.init.normal_(self.down.weight, std=0.02)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, frames, WIDTH) to the same."""
        count = x.shape[1]
        before = pad(x, (0, 0, (KERNEL - 1) * self._dilation, 0))
        y = self.bias
        for place, tap in enumerate(self.taps):
            start = place * self._dilation
            y = y + before[:, start:start + count] * tap
        added: Tensor = self.down(gelu(self.up(self.norm(y)), approximate="tanh"))
        return x + added


class Encoder(nn.Module):
    """``classes`` are the pieces and blank; ``phones`` are learnt beside them and do not ship."""

    def __init__(self, classes: int, phones: int) -> None:
        super().__init__()
        self.first = nn.Linear(FRAME_WIDTH, WIDTH)
        self.blocks = nn.ModuleList([Block(dilation) for dilation in DILATIONS])
        self.norm = nn.LayerNorm(WIDTH)
        self.embeddings = nn.Embedding(classes, WIDTH)
        self.bias = nn.Parameter(torch.zeros(classes))
        self.phones = nn.Linear(WIDTH, phones)
        nn.init.normal_(self.embeddings.weight, std=0.02)

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (batch, frames, classes) and those of phones, for frames (batch, frames, FRAME_WIDTH)."""
        x = self.first(frames)
        told = x
        for number, block in enumerate(self.blocks, 1):
            x = block(x)
            if number == _TOLD_AFTER:
                told = x
        return linear(self.norm(x), self.embeddings.weight, self.bias), self.phones(told)
