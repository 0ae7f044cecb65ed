"""What becomes of an answer that the thinker is not sure of: it asks back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duologue.engine.models.embedded.thinking.format import Answer, Heard
from duologue.engine.runners.base import Rows, Sampling
from duologue.engine.runners.rules import held

ASK_BACK = "Sorry, I did not understand that. Could you say it again?"
REFUSALS = ("Sorry, I do not know about that. Say help, and I tell you what I can do.",
            "I know nothing about that, I am afraid.",
            "That is beyond me. Say help, and I tell you what I can do.",
            "I am sorry, that is more than I know.")
"""What the thinker says to what it knows nothing about. They stay however unsure it is: they do nothing, and which of
them comes next is part of the likelihood."""
SURE = 0.55
"""Likelihood from which another answer is given: half of the wrong answers to new wordings are below it or ask
themselves, and one in fifty of the right ones (``training/thinker/MODEL_CARD.md``)."""
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
    unsure = answer.speaks and not answer.keeps and answer.likelihood < SURE and answer.text not in REFUSALS
    return _ASKS if unsure and not heard.over else answer
