"""Several processes of a kind: sessions are spread over them, and move when one dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from duologue.engine import (
    CallerWords,
    ConfigError,
    Decision,
    Engine,
    Health,
    PipelineConfig,
    Refused,
    ReplyAudio,
    TurnEnd,
    TurnStatus,
)
from duologue.metrics import MOVES
from tests.engine.scripted import Order, pipeline
from tests.engine.test_engine import Caller, ended, kill

pytestmark = pytest.mark.component


@pytest.fixture(params=[("mind", "voice", "voice"), ("mind", "~voice", "voice"), ("mind", "~talk", "~sound")],
                ids=["by_the_hub", "by_shared_memory", "three_processes"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    processes = {name.removeprefix("~"): {"replicas": 2} for name in request.param}
    engine = await Engine.start(pipeline(*request.param, processes=processes))
    yield engine
    await engine.close()


def replicas_of(engine: Engine, stage: str) -> list[str]:
    return sorted(name for name, health in engine.health().items() if stage in health.stages)


def last_decided(caller: Caller) -> int:
    return max((event.unit for event in caller.events if isinstance(event, Decision)), default=-1)


@pytest.mark.parametrize("stage", ["thinker", "talker", "codec"])
async def test_a_session_moves_off_a_dead_process_at_once_and_its_reply_goes_on(engine: Engine, stage: str) -> None:
    callers = [Caller(engine.open()) for _ in range(4)]
    for caller in callers:
        caller.say(Order.HEAR, Order.SPEAK, Order.SPEAK)
    for caller in callers:
        await caller.spoken(0, 2)
    name = replicas_of(engine, stage)[0]
    moved = MOVES.labels(process=name.partition("/")[0])._value.get()
    kill(engine, name)
    down = await asyncio.gather(*(caller.until(lambda event: isinstance(event, Health)) for caller in callers[::2]))
    assert [event.up for event in down if isinstance(event, Health)] == [False, False]
    # Nothing waits for the dead process: the other one has the session before it is back.
    for caller in callers:
        caller.say(Order.SPEAK, Order.FINISH, Order.RECALL)
    for caller in callers:
        while not caller.ends or last_decided(caller) < 5:
            await caller.until(lambda event: isinstance(event, TurnEnd | Decision))
    for caller in callers:
        assert caller.words(0) == [0, 1, 2, 3]
        assert caller.ends == [(0, TurnStatus.DONE, "w0 w1 w2 w3 ")]
        remembered = next(e.text for e in reversed(caller.events) if isinstance(e, CallerWords))
        assert remembered.startswith("CallerSaid:heard 0 | ")
        assert remembered.endswith("AgentSaid:w0 w1 w2 w3 ")
    assert MOVES.labels(process=name.partition("/")[0])._value.get() == moved + 2
    untouched = [caller for caller in callers if not any(isinstance(e, Health) for e in caller.events)]
    assert len(untouched) == 2


async def test_a_replica_that_is_back_takes_new_sessions(engine: Engine) -> None:
    first = Caller(engine.open())
    name = replicas_of(engine, "talker")[0]
    before = engine.health()[name].pid
    kill(engine, name)
    async with asyncio.timeout(20):
        await first.until(lambda event: isinstance(event, Health) and not event.up)
        while not (engine.health()[name].up and engine.health()[name].pid != before):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    callers = [first, *(Caller(engine.open()) for _ in range(3))]
    for caller in callers:
        caller.say(Order.FINISH)
        await caller.until(ended)
        assert caller.words(0) == [0]


async def test_a_session_ends_only_when_no_replica_is_left() -> None:
    engine = await Engine.start(pipeline("mind", "voice", "voice", processes={"voice": {"replicas": 2}},
                                         supervision={"max_restarts": 0}))
    try:
        caller = Caller(engine.open())
        caller.say(Order.SPEAK)
        await caller.spoken(0, 1)
        kill(engine, "voice/0")
        caller.say(Order.SPEAK)
        await caller.spoken(0, 2)
        other = Caller(engine.open())
        kill(engine, "voice/1")
        await caller.to_the_end()
        await other.to_the_end()
        assert caller.ends == [(0, TurnStatus.FAILED, "w0 w1 ")]
        with pytest.raises(Refused, match="voice/0, voice/1"):
            engine.open()
        assert engine.load().sessions == 0
    finally:
        await engine.close()


async def test_sessions_are_spread_over_the_replicas() -> None:
    engine = await Engine.start(pipeline("one", "one", "one", processes={"one": {"replicas": 2}}))
    try:
        callers = [Caller(engine.open()) for _ in range(4)]
        heard: Counter[bool] = Counter()
        kill(engine, "one/1")
        for caller in callers:
            caller.say(Order.FINISH)
            await caller.until(ended)
            heard[any(isinstance(event, Health) for event in caller.events)] += 1
            assert sum(len(event.pcm) for event in caller.events if isinstance(event, ReplyAudio)) > 0
        assert heard[False] >= 2
    finally:
        await engine.close()


def with_kv(**options: Any) -> PipelineConfig:
    config = pipeline("mind", "voice", "voice").model_dump(mode="json")
    config["stages"][0] |= {"model": "tests.engine.scripted.kv_thinker", "options": options}
    return PipelineConfig.model_validate(config)


async def test_a_session_is_admitted_only_if_its_kv_fits_at_full_length() -> None:
    engine = await Engine.start(with_kv(positions=250, session_positions=100))
    try:
        sessions = [engine.open(), engine.open()]
        with pytest.raises(Refused, match="hold all of the model's memory") as refusal:
            engine.open()
        assert (refusal.value.reason, refusal.value.position) == ("capacity", 1)
        await sessions[0].close()
        engine.open(ticket=refusal.value.ticket)
    finally:
        await engine.close()


async def test_kv_too_small_for_one_session_is_an_error_at_the_start() -> None:
    with pytest.raises(ConfigError, match="holds 50 positions, but one session may need 100"):
        await Engine.start(with_kv(positions=50, session_positions=100))


async def test_replicas_joined_by_shared_memory_must_be_as_many() -> None:
    with pytest.raises(ValueError, match="replicas"):
        pipeline("mind", "~voice", "voice", processes={"voice": {"replicas": 2}})
