"""How weights are stepped: matrices inside a model by Muon, its ends by AdamW, both as one optimizer.

Muon (Jordan et al. 2024) turns a matrix's step into one of equal size in all directions; scaled as by Moonlight (arXiv
2502.16982) it takes AdamW's learning rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from training.course import set_rate

LEARNING_RATE = 3e-3
_WEIGHT_DECAY = 0.1
_SLOW = 0.1
"""Share of a step that known words take: alike in ordinary English, they are not to part for a few sentences."""


class Steppers:
    """Steps the parameters of ``model``, whose embeddings' name holds ``embed``."""

    def __init__(self, model: nn.Module, known: Sequence[int] = (), ends: Sequence[nn.Parameter] = ()) -> None:
        """``known``: ids of embeddings that mean something from the first, and step slowly; ``ends``: matrices that
        only tell what is inside, and so are none of it."""
        [self._embeddings] = (parameter for name, parameter in model.named_parameters() if "embed" in name)
        self._known = torch.tensor(known, dtype=torch.long)
        outer = {id(self._embeddings), *map(id, ends)}
        inner = [parameter for parameter in model.parameters() if parameter.dim() == 2 and id(parameter) not in outer]
        others = [parameter for parameter in model.parameters() if parameter.dim() != 2 or id(parameter) in outer]
        self._all: dict[str, torch.optim.Optimizer] = {
            "muon": torch.optim.Muon(inner, LEARNING_RATE, weight_decay=_WEIGHT_DECAY,
                                     adjust_lr_fn="match_rms_adamw"),
            "adamw": torch.optim.AdamW(others, LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.0, fused=True)}

    def step(self, share: float) -> None:
        """Step with that share of the learning rate, and forget the gradients."""
        before = self._embeddings.detach()[self._known]
        for each in self._all.values():
            set_rate(each, LEARNING_RATE * share)
            each.step()
            each.zero_grad()
        with torch.no_grad():
            self._embeddings[self._known] = before.lerp(self._embeddings[self._known], _SLOW)

    def state_dict(self) -> dict[str, Any]:
        """What ``load_state_dict`` takes."""
        return {name: each.state_dict() for name, each in self._all.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from ``state``."""
        for name, each in self._all.items():
            each.load_state_dict(state[name])
