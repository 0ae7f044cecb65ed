"""``Sampling`` in vLLM: a logits processor that chooses each token by the runners' common rules.

vLLM's own sampler could draw among what the rules leave, but a resumable request keeps the seed of its first segment,
and its penalties count all of the prompt. So the token is chosen here, nothing else is left in its row, and vLLM's
greedy sampler takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from duologue.engine.runners.base import Sampling
from duologue.engine.runners.sampling import choose
from duologue.engine.runners.vllm.inputs import extra, from_plain


class Rules(LogitsProcessor):  # type: ignore[misc]
    """The rules of each request in the batch, by its row."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self._rows: dict[int, tuple[Sampling, Sequence[int]]] = {}
        """Sampling and the segment's tokens so far, which vLLM appends to."""

    def is_argmax_invariant(self) -> bool:
        """Rules change which token is taken."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests through the batch."""
        process_dict_updates(self._rows, batch_update, self._entry)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Leave the chosen token alone in each row (rows, vocabulary) that has rules."""
        if not self._rows:
            return logits
        rows = list(self._rows)
        samplings, said = zip(*self._rows.values(), strict=True)
        chosen = choose(logits[rows], samplings, said)
        logits[rows] = -torch.inf
        logits[rows, chosen] = 0.0
        return logits

    @staticmethod
    def _entry(params: Any, prompt: list[int] | None, tokens: list[int]) -> tuple[Sampling, Sequence[int]] | None:
        values = extra(params)["sampling"]
        return None if values is None else (from_plain(values), tokens)
