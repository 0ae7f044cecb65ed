"""Logits of every decision equal the released code's, with its own answers in the sequence.

float32 on a CPU on both sides, over a sequence of some 1100 positions that each attend to all before: logits of some 10
are to agree to a few times 1e-5.
"""

from __future__ import annotations

import numpy as np
import torch

from duologue.engine.models.minicpmo.checkpoint import load
from duologue.engine.models.minicpmo.hearing.ear import Ear
from duologue.engine.models.minicpmo.weights import thinker_weights
from duologue.engine.runners.base import Embeddings, Piece, Segment, Tokens
from duologue.engine.runners.opening import RunnerOptions, open_runner
from tests.engine.models.minicpmo.golden.inputs import RATE, caller, reference
from tests.engine.models.minicpmo.golden.values import SOURCE, parts, values
from tests.engine.runners.vllm.driving import finish


def test_logits_of_every_decision_are_the_releases() -> None:
    checkpoint = load(SOURCE)
    ear = Ear(checkpoint.config, checkpoint.tensors("hearing"), torch.device("cpu"), torch.float32)
    stream, pcm, arrays = ear.stream(), caller(), values("decisions")
    before, behind = (Tokens(tuple(arrays[name].tolist())) for name in ("before", "behind"))
    pieces: list[Piece] = [before, ear.clip(reference()), behind]
    deciding: list[int] = []
    length = sum(map(len, pieces))
    for unit, answer in enumerate(parts("decisions", "answers")):
        rows: Embeddings = stream.hear(pcm[unit * RATE:(unit + 1) * RATE])
        spoken = Tokens((*answer.tolist(), checkpoint.tokens.unit_end))
        pieces += [Tokens((checkpoint.tokens.unit,)), rows, spoken]
        # A token is decided by what was fed before it: the last row, then each token of the answer.
        deciding += range(length + len(rows), length + len(rows) + arrays["decided"][unit])
        length += 1 + len(rows) + len(spoken)
    runner = open_runner(checkpoint.thinker, thinker_weights(SOURCE), RunnerOptions())
    told = finish(runner, Segment("s", 0, tuple(pieces), None, "all"))["s"]
    runner.close()
    assert told.cached == length
    head = dict(checkpoint.tensors("thinker"))["lm_head.weight"].numpy()
    logits = np.stack([told.rows[at] for at in deciding]) @ head.T
    np.testing.assert_allclose(logits, arrays["logits"], rtol=1e-4, atol=1e-4)
