"""Random weights through the whole path: units in, decisions, text, codes, 24 kHz audio out; all stages real."""

from __future__ import annotations

from typing import Any

import pytest

from duologue.engine import (
    Choice,
    Decision,
    PipelineConfig,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    Unit,
)
from tests.engine.models.minicpmo.golden.inputs import RATE, caller
from tests.engine.simulation import Simulation

pytestmark = pytest.mark.component

CODE_SAMPLES = 960


def pipeline() -> PipelineConfig:
    def stage(name: str, process: str) -> dict[str, Any]:
        return {"name": name, "role": name, "model": f"minicpmo.{name}", "process": process,
                "options": {"load_format": "random"}}

    return PipelineConfig.model_validate({
        "name": "minicpmo-random", "unit_ms": 1000, "output_rate": 24_000,
        "stages": [stage("thinker", "thinker"), stage("talker", "voice"), stage("codec", "voice")],
        "edges": [{"source": "thinker", "target": "talker", "connector": "shm"},
                  {"source": "talker", "target": "codec", "connector": "local"}],
        "chunking": {"initial_codec_chunk_frames": 8, "codec_chunk_frames": 25, "codec_left_context_frames": 0}})


def say(sim: Simulation, count: int) -> None:
    pcm = caller()
    for unit in range(sim.state.units, sim.state.units + count):
        sim.state.append(Unit(unit, pcm[unit * RATE:(unit + 1) * RATE], speech=0.0))
        sim.collect()
        sim.settle()


def of(sim: Simulation, kind: type[Any]) -> list[Any]:
    return [event for event in sim.events if isinstance(event, kind)]


def of_turn(sim: Simulation, kind: type[Any], turn: int) -> list[Any]:
    return [event for event in of(sim, kind) if event.fence.turn == turn]


def test_a_call_is_listened_to_and_answered_in_whole_replies() -> None:
    sim = Simulation(pipeline())
    say(sim, 16)
    decisions = of(sim, Decision)
    assert [event.unit for event in decisions] == list(range(16))
    assert {event.choice for event in decisions} == {Choice.LISTEN, Choice.SPEAK}
    ends = of(sim, TurnEnd)
    assert len([end for end in ends if end.status is TurnStatus.DONE]) >= 2
    assert not [end for end in ends if end.status is TurnStatus.FAILED]
    for end in ends:
        assert "".join(text.text for text in of_turn(sim, ReplyText, end.turn)) == end.text
        audio = of_turn(sim, ReplyAudio, end.turn)
        assert audio[-1].last
        assert not any(each.last for each in audio[:-1])
        # Three silent codes come before those of the talker.
        samples = sum(len(each.pcm) for each in audio)
        assert samples % CODE_SAMPLES == 0
        assert samples > 3 * CODE_SAMPLES
        assert any(each.pcm.any() for each in audio)


def test_an_interrupted_reply_is_silent_and_the_session_goes_on_to_another() -> None:
    sim = Simulation(pipeline())
    open_turns: set[int] = set()
    while not open_turns:
        say(sim, 1)
        open_turns = {each.fence.turn for each in of(sim, ReplyAudio)} - {end.turn for end in of(sim, TurnEnd)}
    turn, = open_turns
    sim.state.interrupt(turn, 3000)
    sim.collect()
    sim.settle()
    heard = len(of_turn(sim, ReplyAudio, turn))
    say(sim, 12)
    assert [end.status for end in of(sim, TurnEnd) if end.turn == turn] == [TurnStatus.INTERRUPTED]
    assert len(of_turn(sim, ReplyAudio, turn)) == heard
    assert [end for end in of(sim, TurnEnd) if end.turn > turn and end.status is TurnStatus.DONE]
