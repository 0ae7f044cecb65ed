"""The shipped pipeline of random weights: real thinker, talker, codec and runner, shared memory between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duologue.config import load
from duologue.engine import Decision, PipelineConfig, ReplyAudio, ReplyText, TurnEnd, TurnStatus, Unit
from duologue.engine.models.duplex.thinker import Thinker
from tests.engine.runners.fake_runner import states
from tests.engine.simulation import Simulation

pytestmark = pytest.mark.component


def config(**thinker: Any) -> PipelineConfig:
    """The shipped config, with other options of its thinker."""
    pipeline = load("stage_configs/duplex-random.yaml").pipeline
    first = pipeline.stages[0].model_copy(update={"options": {**pipeline.stages[0].options, **thinker}})
    return pipeline.model_copy(update={"stages": (first, *pipeline.stages[1:])})


def say(sim: Simulation, count: int) -> None:
    for _ in range(count):
        noise = np.random.default_rng(sim.state.units).normal(0, 3000, 16_000)
        sim.state.append(Unit(sim.state.units, noise.astype(np.int16), speech=0.0))
        sim.collect()
        sim.settle()


def of(sim: Simulation, kind: type[Any]) -> list[Any]:
    return [event for event in sim.events if isinstance(event, kind)]


def sequence(sim: Simulation) -> list[int]:
    stage = sim.workers["thinker"].stages["thinker"]
    assert isinstance(stage, Thinker)
    return states(stage._sessions.sequence(sim.state.session))


def test_the_shipped_config_speaks_and_ends_what_it_says() -> None:
    sim = Simulation(config())
    say(sim, 12)
    assert [event.unit for event in of(sim, Decision)] == list(range(12))
    over = [end for end in of(sim, TurnEnd) if end.status is TurnStatus.DONE]
    assert len(over) >= 2
    for end in over:
        texts = [event for event in of(sim, ReplyText) if event.fence.turn == end.turn]
        audio = [event for event in of(sim, ReplyAudio) if event.fence.turn == end.turn]
        assert "".join(text.text for text in texts) == end.text
        assert audio[-1].last
        assert sum(len(each.pcm) for each in audio) >= 24_000
    assert not [end for end in of(sim, TurnEnd) if end.status is TurnStatus.FAILED]


def test_a_thinker_that_was_killed_and_one_that_lived_say_the_same() -> None:
    greedy = {"sampling": {"temperature": 0.0, "listen_bias": -1.0, "turn_eos_bias": 3.0, "chunk_eos_bias": 4.0},
              "window": {"rule": "text", "high": 300, "low": 200, "text_tokens": 40}}
    lived, killed = Simulation(config(**greedy)), Simulation(config(**greedy))
    for sim in (lived, killed):
        say(sim, 6)
        turns = [event.fence.turn for event in of(sim, ReplyText)]
        sim.state.interrupt(turns[-1], 3000)
        sim.collect()
        sim.settle()
        say(sim, 14)
    for name in ("thinker", "voice"):
        killed.kill(name)
    killed.settle()
    for sim in (lived, killed):
        say(sim, 6)
    assert [each.tokens for each in of(lived, Decision)] == [each.tokens for each in of(killed, Decision)]
    assert sequence(lived) == sequence(killed)
