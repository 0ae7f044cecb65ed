"""Both runners over a checkpoint in the release's form: its sharded files, its names, its head in two tensors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from duologue.engine.models.minicpmo import random
from duologue.engine.models.minicpmo.checkpoint import CheckpointOptions, load
from duologue.engine.models.minicpmo.weights import talker_weights, thinker_weights
from duologue.engine.runners.base import Embeddings, Piece, Runner, Segment, Tokens
from duologue.engine.runners.opening import RunnerOptions, open_runner
from tests.engine.runners.torch_reference import Told, embeddings, segment
from tests.engine.runners.vllm.waiting import wait

pytestmark = pytest.mark.component

UNITS = 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("minicpmo")
    random.write(made, "tiny", seed=2)
    return made


@pytest.fixture(params=["thinker", "talker"])
def pair(folder: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Runner, Runner]]:
    """The own runner reads the files; so does vLLM for the talker, and makes the thinker up in its process."""
    stored, made = CheckpointOptions(checkpoint=folder), CheckpointOptions(load_format="random", seed=2)
    checkpoint = load(stored)
    decoder, weights, same = (checkpoint.thinker, thinker_weights(stored), thinker_weights(made)) \
        if request.param == "thinker" else (checkpoint.talker, talker_weights(stored), talker_weights(stored))
    own = open_runner(decoder, weights, RunnerOptions())
    stock = open_runner(decoder, same, RunnerOptions.model_validate({"runner": "vllm", "vllm": {
        "max_model_len": 512, "max_num_seqs": 2, "kv_positions": 1024, "enforce_eager": True}}))
    yield own, stock
    own.close()
    stock.close()


def finished(runner: Runner, given: Segment) -> Told:
    told = Told()
    runner.submit(given)
    while told.finish is None:
        if not runner.ready:
            wait(runner)
        for said in runner.step():
            told.hear(said)
    return told


def session(runner: Runner) -> list[Told]:
    """Units of rows and tokens, each with its answer's last token put back."""
    answers: list[Told] = []
    cached = 0
    for i in range(UNITS):
        rows = embeddings(10, i, runner.capacity.hidden_size)
        given: list[Piece] = [Tokens(tuple(answers[-1].tokens[-1:])) if answers else Tokens((3,)),
                              Embeddings(rows.rows, rows.key), Tokens((5,))]
        answers.append(finished(runner, segment("a", cached, given, 8, "all")))
        cached = answers[-1].cached
    return answers


def test_vllm_gives_the_own_runners_tokens_and_hidden_states(pair: tuple[Runner, Runner]) -> None:
    for own, stock in zip(*map(session, pair), strict=True):
        assert own.tokens == stock.tokens
        assert own.rows.keys() == stock.rows.keys()
        np.testing.assert_allclose(np.stack([stock.rows[i] for i in sorted(stock.rows)]),
                                   np.stack([own.rows[i] for i in sorted(own.rows)]), atol=2e-4, rtol=1e-3)
