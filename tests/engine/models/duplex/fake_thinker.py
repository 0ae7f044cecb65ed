"""The duplex thinker over a fake runner: all of it but the model, which is a pure function of the sequence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from duologue.engine import PipelineConfig
from duologue.engine.models.duplex import random
from duologue.engine.models.duplex.ear import Ear
from duologue.engine.models.duplex.floor import FloorOptions
from duologue.engine.models.duplex.format import Format, SamplingOptions
from duologue.engine.models.duplex.mind import Model
from duologue.engine.models.duplex.thinker import Thinker
from duologue.engine.models.duplex.words import Words
from duologue.engine.runners.window import WindowConfig
from tests.engine.runners.fake_runner import FakeRunner, capacity

SHAPE = random.shape("tiny")
CONFIG = SHAPE.config.model_copy(update={"unit_ms": 80, "row_ms": 20, "max_unit_tokens": 8})
UNIT_SAMPLES = 1280
TOKENS = CONFIG.tokens
TOKENIZER = random.tokenizer(SHAPE)
TALKATIVE = {"turn_eos_bias": 15, "chunk_eos_bias": 80}
"""Replies of a few units, with silences between them."""


class FakeThinker(Thinker):
    def __init__(self, runner: FakeRunner, options: Mapping[str, Any]) -> None:
        made = np.random.default_rng(1)
        ear = Ear(made.normal(size=(4, 80)).astype(np.float32), made.normal(size=4).astype(np.float32), CONFIG.row_ms)
        sampling = SamplingOptions.model_validate({**TALKATIVE, **options.get("sampling", {})})
        window = options.get("window")
        super().__init__(runner, Model(Format(CONFIG, random.tokenizer(SHAPE), sampling), Words(TOKENIZER), ear, 64,
                                       FloorOptions.model_validate(options.get("floor", {}))),
                         WindowConfig.model_validate(window) if window else None)
        self.runner = runner
        self.sessions = self._sessions


def create(options: Mapping[str, Any], _pipeline: PipelineConfig | None = None) -> FakeThinker:
    limits = capacity(positions=options.get("positions", 65536), max_length=options.get("max_length", 8192),
                      max_sessions=options.get("max_sessions", 8), vocabulary=SHAPE.thinker.vocab_size)
    return FakeThinker(FakeRunner(limits, options.get("cut", "anywhere")), options)
