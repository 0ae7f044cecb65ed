"""Rules of the embedded family's stages that only show when messages come thick and fast."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engine.messages import AppendUnit, Close, Decision, Open, SessionFailed, StageInput, StageOutput, Unit
from duologue.engine.models.embedded.thinker import Thinker, create
from tests.engine.models.embedded.caller import PIPELINE, SAMPLES

SILENCE = np.zeros(SAMPLES, np.int16)


@pytest.fixture(scope="module")
def stage() -> Thinker:
    return create({"greeting": "", "warm_recognisers": 1}, PIPELINE)


def units(session: str, *numbers: int) -> list[AppendUnit]:
    return [AppendUnit(session, 0, Unit(number, SILENCE, speech=0.0)) for number in numbers]


def tell(stage: Thinker, *messages: StageInput) -> None:
    for message in messages:
        stage.receive(message)


def settle(stage: Thinker) -> list[StageOutput]:
    outputs: list[StageOutput] = []
    while any(stage._inboxes.values()):
        outputs += stage.step()
    return outputs


def decided(outputs: list[StageOutput]) -> list[int]:
    return [output.unit for output in outputs if isinstance(output, Decision)]


def test_a_session_opened_again_in_place_before_the_stage_has_read_its_close_goes_on(stage: Thinker) -> None:
    tell(stage, Open("again", 0, 0, 0), *units("again", 0, 1))
    stage.step()
    tell(stage, Close("again"), Open("again", 0, 0, 1, decided=1), *units("again", 1, 2))
    assert decided(settle(stage)) == [1, 2]
    stage.receive(Close("again"))
    settle(stage)
    assert not stage._minds
    assert not stage._inboxes


def test_a_fault_of_an_earlier_life_does_not_end_the_one_that_waits(
        stage: Thinker, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.receive(Open("struck", 0, 0, 0))
    settle(stage)

    def fault(unit: Unit) -> list[StageOutput]:
        raise RuntimeError("a fault")

    monkeypatch.setattr(stage._minds["struck"], "hear", fault)
    tell(stage, *units("struck", 0), Close("struck"), Open("struck", 1, 0, 0), *units("struck", 0))
    outputs = settle(stage)
    assert not [output for output in outputs if isinstance(output, SessionFailed)]
    assert decided(outputs) == [0]
    stage.receive(Close("struck"))
    settle(stage)
    assert not stage._minds
