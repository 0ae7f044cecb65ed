"""A session's log costs no more for having been listened to for long."""

from __future__ import annotations

from itertools import count, islice

import numpy as np

from duologue.engine.messages import AppendUnit, Decision, Open, Unit
from duologue.engine.runners.base import Sampling, Tokens
from duologue.engine.runners.log import Grammar
from duologue.engine.runners.sessions import Sessions
from tests.engine.models.duplex import fake_thinker
from tests.engine.runners.fake_runner import FakeRunner, capacity
from tests.engine.test_rules_cost import operations

LISTEN = 9
GRAMMAR = Grammar(terminators=True, unsaid=frozenset({LISTEN}))
SILENT = Sampling(max_tokens=1, first=(LISTEN,))


def test_a_unit_costs_the_same_however_long_the_session_has_listened() -> None:
    sessions = Sessions(FakeRunner(capacity(positions=16_384, max_length=16_000)), GRAMMAR)
    sessions.open("s", [Tokens((1, 2, 3))])

    def listen() -> None:
        sessions.append("s", [Tokens((4,) * 12)])
        sessions.generate("s", SILENT, "generated")
        while sessions.ready:
            sessions.step()

    for _ in range(50):
        listen()
    early = operations(listen)
    for _ in range(1000):
        listen()
    assert early > 100
    assert operations(listen) <= early * 1.02


def test_a_unit_of_the_duplex_thinker_costs_the_same_however_often_its_window_has_slid() -> None:
    stage = fake_thinker.create({"window": {"high": 1000, "low": 700}})
    stage.receive(Open("s", 0, 0, 0))
    noise = np.random.default_rng(0)
    numbers = count()
    decided: list[int] = []

    def hear(units: int) -> None:
        for number in islice(numbers, units):
            pcm = (noise.normal(size=fake_thinker.UNIT_SAMPLES) * 100).astype(np.int16)
            stage.receive(AppendUnit("s", 0, Unit(number, pcm, speech=0.0)))
            while stage.ready:
                decided.extend(output.unit for output in stage.step() if isinstance(output, Decision))

    hear(300)
    early = operations(lambda: hear(60))
    hear(500)
    late = operations(lambda: hear(60))
    assert decided == list(range(920))
    # Some units are answered with more words than others.
    assert late <= early * 1.3
