"""What becomes of an answer that the thinker is not sure of: it asks back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duologue.engine.models.embedded.thinking.format import Answer, Heard
from duologue.engine.runners.base import Rows, Sampling
from duologue.engine.runners.rules import held

ASK_BACK = "Sorry, I did not understand that. Could you say it again?"
SURE = 0.5
"""Likelihood from which an answer is given: half of the wrong answers to new wordings are below it or ask themselves,
and one in fifty of the right ones (``training/thinker/MODEL_CARD.md``)."""
_ASKS = Answer(speaks=True, text=ASK_BACK, whole=True)


def likelihood(states: Rows, table: Rows, tokens: Sequence[int], sampling: Sampling) -> float:
    """The probability of ``tokens`` behind the first of them, among what greedy ``sampling`` lets be chosen.

    ``states`` (tokens - 1, hidden_size) are those of all but the last, ``table`` (vocabulary, hidden_size) the tied
    embeddings. Whether to speak at all, the first token, counts nothing: at other silences that is decided again.
    """
    logits = states @ table.T
    logits[:, list(sampling.forbidden)] = -np.inf
    found = 0.0
    for place, (row, token) in enumerate(zip(logits, tokens[1:], strict=True), 1):
        if place == sampling.max_tokens - 1 and sampling.at_budget is not None:
            break
        among = held(sampling, tokens[:place])
        left = row[list(among)] if among else row
        found += row[token] - np.logaddexp.reduce(left)
    return float(np.exp(found))


def considered(answer: Answer, heard: Heard) -> Answer:
    """What is to be done of ``answer`` to ``heard``."""
    unsure = answer.speaks and not answer.keeps and answer.likelihood < SURE
    return _ASKS if unsure and not heard.over else answer
