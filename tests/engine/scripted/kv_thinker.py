"""The scripted thinker, whose sessions hold KV as the stage's options say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duologue.engine import PipelineConfig
from duologue.engine.stage import KvBudget
from tests.engine.scripted.thinker import Thinker


class KvThinker(Thinker):
    def __init__(self, kv_budget: KvBudget) -> None:
        super().__init__()
        self.kv_budget = kv_budget


def create(options: Mapping[str, Any], _pipeline: PipelineConfig) -> KvThinker:
    return KvThinker(KvBudget(options["positions"], options["session_positions"], sessions=100))
