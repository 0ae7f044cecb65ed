"""One session through both runners: interruptions, slides of the window, and moving from one runner to the other."""

from __future__ import annotations

import select
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duologue.config import load
from duologue.engine import Decision, ReplyText, Unit
from duologue.engine.messages import AgentSaid, AppendUnit, Decided, Interrupt, Open
from duologue.engine.models.duplex import random, thinker
from duologue.engine.models.duplex.thinker import Thinker
from tests.engine.runners.fake_runner import states

pytestmark = pytest.mark.component

UNITS = 24
GREEDY = {"sampling": {"temperature": 0.0, "listen_bias": -1.0, "turn_eos_bias": 3.0, "chunk_eos_bias": 4.0},
          "window": {"rule": "text", "high": 300, "low": 200, "text_tokens": 40}}


def create(folder: Path, **options: Any) -> Thinker:
    return thinker.create({"checkpoint": folder, **GREEDY, **options},
                          load("stage_configs/duplex-random.yaml").pipeline)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("duplex")
    random.write(made, "tiny", seed=0)
    return made


@pytest.fixture(scope="module")
def own(folder: Path) -> Iterator[Thinker]:
    stage = create(folder)
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def stock(folder: Path) -> Iterator[Thinker]:
    stage = create(folder, runner="vllm", vllm={"max_model_len": 1024, "enforce_eager": True, "kv_positions": 8192,
                                                "gpu_memory_utilization": 0.1})
    yield stage
    stage.close()


def unit(index: int) -> Unit:
    return Unit(index, np.random.default_rng(index).normal(0, 3000, 16_000).astype(np.int16), speech=0.0)


class Call:
    """A session, interrupted twice within its replies."""

    def __init__(self, stage: Thinker, name: str, **opening: Any) -> None:
        self.stage, self.name, self.epoch = stage, name, opening.get("epoch", 0)
        self.decisions: list[Decision] = []
        self.texts: list[ReplyText] = []
        self.history: dict[int, AgentSaid] = {}
        stage.receive(Open(name, self.epoch, opening.pop("next_turn", 0), 0, decided=len(opening.get("outputs", ())),
                           **{key: value for key, value in opening.items() if key != "epoch"}))

    def give(self, index: int) -> None:
        self.stage.receive(AppendUnit(self.name, self.epoch, unit(index)))

    def ask(self, index: int) -> None:
        self.give(index)
        count = len(self.decisions)
        while len(self.decisions) == count:
            if not self.stage.ready:
                assert self.stage.wake_fd is not None
                assert select.select([self.stage.wake_fd], [], [], 60)[0], "nothing came"
            for each in self.stage.step():
                if isinstance(each, Decision):
                    self.decisions.append(each)
                else:
                    assert isinstance(each, ReplyText)
                    self.texts.append(each)

    def interrupt(self) -> None:
        turn = self.texts[-1].fence.turn
        self.epoch += 1
        self.history[turn] = AgentSaid(turn, self.text(turn)[:3], cut=self.epoch)
        self.stage.receive(Interrupt(self.name, self.epoch, turn, self.text(turn)[:3], turn))

    def text(self, turn: int) -> str:
        return "".join(text.text for text in self.texts if text.fence.turn == turn)

    def run(self) -> None:
        for index in range(UNITS):
            self.ask(index)
            if index in (5, 13):
                self.interrupt()

    @property
    def sequence(self) -> list[int]:
        return states(self.stage._sessions.sequence(self.name))

    def moved_to(self, stage: Thinker) -> Call:
        """The session opened in another thinker, from what the hub would have of it."""
        last = max(text.fence.turn for text in self.texts)
        history = {text.fence.turn: AgentSaid(text.fence.turn, self.text(text.fence.turn), text.fence.turn == last and
                                              not text.last) for text in self.texts} | self.history
        moved = Call(stage, f"{self.name} moved", epoch=self.epoch, next_turn=last + 1,
                     history=tuple(history[turn] for turn in sorted(history)),
                     outputs=tuple(Decided(each.unit, each.turn, each.tokens, each.epoch) for each in self.decisions))
        for index in range(UNITS):
            moved.give(index)
        return moved


def test_both_runners_give_the_same_session_and_take_it_over_from_each_other(own: Thinker, stock: Thinker) -> None:
    here, there = Call(own, "one"), Call(stock, "one")
    for call in (here, there):
        call.run()
    assert [each.tokens for each in here.decisions] == [each.tokens for each in there.decisions]
    assert here.sequence == there.sequence
    # It slid: that many units do not fit.
    assert len(here.sequence) < 300 < sum(len(each.tokens) + 12 for each in here.decisions)
    states_here, states_there = (np.concatenate([text.conditioning.rows for text in call.texts if text.conditioning])
                                 for call in (here, there))
    np.testing.assert_allclose(states_here, states_there, atol=1e-3)
    moves = [here.moved_to(stock), there.moved_to(own)]
    for call in (here, there, *moves):
        for index in range(UNITS, UNITS + 4):
            call.ask(index)
    for call in (there, *moves):
        assert [each.tokens for each in call.decisions[-4:]] == [each.tokens for each in here.decisions[-4:]]
        assert call.sequence == here.sequence
