"""An encoder with weights drawn at random, in torch and in numpy."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from duologue.engine.models.embedded.hearing.encoder import Encoder
from training.hearing import model

CLASSES = 12


@cache
def network() -> model.Encoder:
    """In torch; its weights are so large that every layer tells."""
    torch.manual_seed(3)
    drawn = model.Encoder(CLASSES, 5)
    with torch.no_grad():
        for parameter in drawn.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return drawn


@cache
def encoder() -> Encoder:
    """The same in numpy."""
    return Encoder({name: tensor.numpy().astype(np.float32) for name, tensor in network().state_dict().items()})
