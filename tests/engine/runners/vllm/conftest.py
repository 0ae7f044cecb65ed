"""One vLLM engine for all tests that do not end it: it takes long to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duologue.engine.runners.vllm.options import VllmOptions
from duologue.engine.runners.vllm.runner import VllmRunner
from tests.engine.runners.torch_reference import tiny, tiny_weights

MAX_MODEL_LEN = 320
KV_POSITIONS = 640
BLOCK = 32
MAX_NUM_SEQS = 4


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.component)


@pytest.fixture(scope="session")
def options() -> VllmOptions:
    """Small, so that limits are near and a long prefill takes several steps."""
    return VllmOptions(max_model_len=MAX_MODEL_LEN, max_num_seqs=MAX_NUM_SEQS, block_size=BLOCK,
                       max_num_batched_tokens=64, kv_positions=KV_POSITIONS, enforce_eager=True)


@pytest.fixture(scope="session")
def engine(options: VllmOptions) -> Iterator[VllmRunner]:
    made = VllmRunner(tiny()[0], tiny_weights, options)
    yield made
    made.close()


@pytest.fixture
def made(engine: VllmRunner) -> Iterator[VllmRunner]:
    """The engine, without sessions."""
    yield engine
    for session in engine.sessions:
        engine.drop(session)
    assert not engine.step()
