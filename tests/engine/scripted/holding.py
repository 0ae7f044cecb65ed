"""A stage that holds KV, and more than memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duologue.engine import PipelineConfig
from duologue.engine.messages import StageInput, StageOutput
from duologue.engine.stage import KvBudget

CLOSED: list[str] = []


class Holding:
    ready = False
    kv_budget = KvBudget(positions=4096, session_positions=1024, sessions=3)

    def __init__(self, name: str) -> None:
        self._name = name

    def receive(self, message: StageInput) -> None:
        pass

    def step(self) -> Sequence[StageOutput]:
        return []

    def close(self) -> None:
        CLOSED.append(self._name)


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Holding:
    return Holding(options.get("name", "thinker"))
