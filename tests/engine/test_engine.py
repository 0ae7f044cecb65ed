"""The engine over real worker processes."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import types
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duologue.engine import (
    CallerText,
    CallerWords,
    ConfigError,
    Decision,
    Engine,
    EngineEvent,
    EngineSession,
    Health,
    Overrun,
    PipelineConfig,
    Refused,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
)
from duologue.engine.wire import Counted, FromStage, Taken
from duologue.metrics import DROPS, STAGE_RESTARTS, UNANSWERED
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline, unit

pytestmark = pytest.mark.component

PLACEMENTS = [("all", "all", "all"), ("mind", "voice", "voice"), ("mind", "talk", "sound"),
              ("mind", "~voice", "voice"), ("mind", "~talk", "~sound")]


class Caller:
    """Gives units and reads events; every wait ends with an event, or the test fails by its guard."""

    def __init__(self, session: EngineSession) -> None:
        self.session = session
        self.units = 0
        self.events: list[EngineEvent] = []
        self._stream = session.outputs()

    def say(self, *orders: Order) -> None:
        for order in orders:
            self.session.append(unit(self.units, order))
            self.units += 1

    async def until(self, wanted: Callable[[EngineEvent], bool]) -> EngineEvent:
        async with asyncio.timeout(20):
            async for event in self._stream:
                self.events.append(event)
                if wanted(event):
                    return event
        raise AssertionError("the session is over")

    async def to_the_end(self) -> None:
        async with asyncio.timeout(20):
            async for event in self._stream:
                self.events.append(event)

    async def decided(self, unit: int) -> None:
        await self.until(lambda event: isinstance(event, Decision) and event.unit == unit)

    async def spoken(self, turn: int, words: int) -> None:
        """Wait until ``words`` words of the reply have come as audio."""
        while self.samples(turn) < words * WORD_SAMPLES:
            await self.until(lambda event: isinstance(event, ReplyAudio) and event.fence.turn == turn)

    async def replied(self) -> None:
        """Wait until a reply has ended, unless one has: past the hub, its audio may come before its unit's decision."""
        if not self.ends:
            await self.until(ended)

    def samples(self, turn: int) -> int:
        return sum(len(e.pcm) for e in self.events if isinstance(e, ReplyAudio) and e.fence.turn == turn)

    def words(self, turn: int) -> list[int]:
        pcm = np.concatenate([e.pcm for e in self.events
                              if isinstance(e, ReplyAudio) and e.fence.turn == turn])
        return [int(word) for word in pcm[::WORD_SAMPLES]]

    @property
    def ends(self) -> list[tuple[int, TurnStatus, str]]:
        return [(e.turn, e.status, e.text) for e in self.events if isinstance(e, TurnEnd)]


@pytest.fixture(params=PLACEMENTS, ids="-".join)
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    engine = await Engine.start(pipeline(*request.param))
    yield engine
    await engine.close()


async def start(**changes: Any) -> Engine:
    return await Engine.start(pipeline("mind", "voice", "voice", **changes))


def ended(event: EngineEvent) -> bool:
    return isinstance(event, TurnEnd)


def kill(engine: Engine, process: str) -> None:
    pid = engine.health()[process].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


async def test_a_whole_reply_comes_in_order_and_ends_once(engine: Engine) -> None:
    caller = Caller(engine.open())
    caller.say(Order.LISTEN, Order.SPEAK, Order.BURST, Order.FINISH, Order.LISTEN)
    await caller.decided(4)
    await caller.replied()
    assert caller.words(0) == list(range(32))
    assert caller.ends == [(0, TurnStatus.DONE, "".join(f"w{n} " for n in range(32)))]
    assert [e.unit for e in caller.events if isinstance(e, Decision)] == [0, 1, 2, 3, 4]


async def test_sessions_do_not_mix(engine: Engine) -> None:
    callers = [Caller(engine.open()) for _ in range(4)]
    for words, caller in enumerate(callers):
        caller.say(*[Order.SPEAK] * words, Order.FINISH)
    for words, caller in enumerate(callers):
        await caller.until(ended)
        assert caller.words(0) == list(range(words + 1))


async def test_nothing_stale_comes_after_an_interruption(engine: Engine) -> None:
    caller = Caller(engine.open())
    caller.say(Order.BURST)
    await caller.spoken(0, 3)
    caller.say(Order.BURST)
    assert caller.session.interrupt(0, 2 * WORD_SAMPLES) == "w0 w1 "
    seen = len(caller.events)
    caller.say(Order.RECALL, Order.FINISH)
    await caller.until(lambda event: isinstance(event, TurnEnd) and event.status is TurnStatus.DONE)
    after = caller.events[seen:]
    fences = [e.fence for e in after if isinstance(e, ReplyText | ReplyAudio)]
    assert {fence.epoch for fence in fences} == {1}
    assert 0 not in {fence.turn for fence in fences}
    assert {e.epoch for e in after if isinstance(e, Decision | TurnEnd)} == {1}
    assert [(turn, text) for turn, status, text in caller.ends if status is not TurnStatus.DONE] == [(0, "w0 w1 ")]
    assert "AgentSaid:w0 w1 " in next(e.text for e in caller.events if isinstance(e, CallerWords))


@pytest.mark.parametrize("stage", ["thinker", "talker", "codec"])
async def test_a_process_killed_in_a_reply_is_restarted_and_the_reply_goes_on(
        engine: Engine, stage: str) -> None:
    process = next(name for name, health in engine.health().items() if stage in health.stages)
    restarts = STAGE_RESTARTS.labels(process=process)._value.get()
    talking, listening = Caller(engine.open()), Caller(engine.open())
    talking.say(Order.HEAR, Order.SPEAK, Order.SPEAK)
    listening.say(Order.HEAR)
    await talking.spoken(0, 2)
    await listening.decided(0)
    kill(engine, process)
    await talking.until(lambda event: isinstance(event, Health) and not event.up)
    talking.say(Order.SPEAK)
    listening.say(Order.RECALL)
    await talking.until(lambda event: isinstance(event, Health) and event.up)
    talking.say(Order.FINISH)
    await talking.until(ended)
    await listening.decided(1)
    assert talking.words(0) == [0, 1, 2, 3]
    assert talking.ends == [(0, TurnStatus.DONE, "w0 w1 w2 w3 ")]
    assert [e.text for e in listening.events if isinstance(e, CallerWords)][-1] == "CallerSaid:heard 0"
    assert STAGE_RESTARTS.labels(process=process)._value.get() == restarts + 1
    assert all(health.up for health in engine.health().values())


async def test_a_process_that_hangs_is_killed_and_its_reply_goes_on() -> None:
    engine = await start(supervision={"hang_timeout_s": 2.0})
    try:
        caller, pid = Caller(engine.open()), engine.health()["voice"].pid
        caller.say(Order.SPEAK, Order.SPEAK)
        await caller.spoken(0, 2)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        caller.say(Order.SPEAK)
        await caller.until(lambda event: isinstance(event, Health) and event.up)
        caller.say(Order.FINISH)
        await caller.until(ended)
        assert caller.words(0) == [0, 1, 2, 3]
        assert caller.ends == [(0, TurnStatus.DONE, "w0 w1 w2 w3 ")]
        assert engine.health()["voice"].pid != pid
        # One that only has nothing to do is left alone.
        thinker = engine.health()["mind"].pid
        await asyncio.sleep(2.5)
        assert engine.health()["mind"].pid == thinker
    finally:
        await engine.close()


async def test_a_failing_session_fails_alone(engine: Engine) -> None:
    failing, other = Caller(engine.open()), Caller(engine.open())
    other.say(Order.SPEAK)
    failing.say(Order.SPEAK, Order.FAIL)
    await failing.to_the_end()
    assert [status for _, status, _ in failing.ends] == [TurnStatus.FAILED]
    other.say(Order.FINISH)
    await other.until(ended)
    assert other.ends == [(0, TurnStatus.DONE, "w0 w1 ")]
    assert engine.load().sessions == 1


async def test_an_exception_in_a_stage_ends_no_process_and_its_sessions_go_on(engine: Engine) -> None:
    pids = [health.pid for health in engine.health().values()]
    callers = [Caller(engine.open()) for _ in range(2)]
    callers[0].say(Order.LISTEN, Order.RAISE_ONCE, Order.FINISH)
    for caller in callers:
        caller.say(*[Order.LISTEN] * (3 - caller.units))
        await caller.decided(2)
    await callers[0].replied()
    assert callers[0].ends == [(0, TurnStatus.DONE, "w0 ")]
    assert [health.pid for health in engine.health().values()] == pids


async def test_a_process_that_dies_too_often_is_given_up_and_new_sessions_are_refused() -> None:
    engine = await start(supervision={"max_restarts": 1})
    try:
        caller = Caller(engine.open())
        caller.say(Order.SPEAK)
        await caller.spoken(0, 1)
        kill(engine, "voice")
        await caller.until(lambda event: isinstance(event, Health) and event.up)
        kill(engine, "voice")
        await caller.to_the_end()
        assert caller.ends == [(0, TurnStatus.FAILED, "w0 ")]
        with pytest.raises(Refused) as refusal:
            engine.open()
        assert refusal.value.reason == "stage_down"
        health = engine.health()
        assert (health["mind"].up, health["voice"].up) == (True, False)
        assert "SIGKILL" in health["voice"].detail
        assert engine.load().sessions == 0
    finally:
        await engine.close()


async def test_an_interruption_while_the_thinker_is_down_is_remembered() -> None:
    engine = await start()
    try:
        caller = Caller(engine.open())
        caller.say(Order.SPEAK, Order.SPEAK)
        await caller.spoken(0, 2)
        kill(engine, "mind")
        await caller.until(lambda event: isinstance(event, Health) and not event.up)
        assert caller.session.interrupt(0, WORD_SAMPLES) == "w0 "
        caller.session.inject(CallerText("typed"))
        caller.say(Order.RECALL)
        await caller.decided(2)
        assert [e.text for e in caller.events if isinstance(e, CallerWords)] == [
            "AgentSaid:w0  | CallerSaid:typed"]
    finally:
        await engine.close()


async def test_units_beyond_the_limit_are_an_overrun() -> None:
    engine = await start(max_pending_units=3)
    try:
        caller = Caller(engine.open())
        os.kill(engine.health()["mind"].pid or 0, signal.SIGSTOP)
        caller.say(*[Order.LISTEN] * 3)
        with pytest.raises(Overrun):
            caller.say(Order.LISTEN)
        os.kill(engine.health()["mind"].pid or 0, signal.SIGCONT)
        await caller.decided(2)
        caller.say(Order.LISTEN)
        await caller.decided(3)
    finally:
        await engine.close()


async def test_a_full_engine_queues_and_admits_in_order_when_room_comes() -> None:
    # No session fits beside another when the least measured time is too much.
    engine = await start(admission={"target_load": 1e-9, "max_waiting": 2})
    try:
        first = Caller(engine.open())
        first.say(Order.LISTEN)
        await first.decided(0)
        tickets = []
        for position in (1, 2):
            with pytest.raises(Refused) as refusal:
                engine.open()
            assert (refusal.value.reason, refusal.value.position) == ("capacity", position)
            tickets.append(refusal.value.ticket)
        with pytest.raises(Refused) as refusal:
            engine.open()
        assert refusal.value.reason == "queue_full"
        await first.session.close()
        with pytest.raises(Refused) as refusal:
            engine.open(ticket=tickets[1])
        assert refusal.value.position == 2
        assert refusal.value.eta_s is not None
        await engine.open(ticket=tickets[0]).close()
    finally:
        await engine.close()


async def test_draining_refuses_new_sessions_and_ends_with_the_last() -> None:
    engine = await start()
    try:
        caller = Caller(engine.open())
        draining = asyncio.create_task(engine.drain())
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refusal:
            engine.open()
        assert refusal.value.reason == "draining"
        caller.say(Order.FINISH)
        await caller.until(ended)
        assert not draining.done()
        await caller.session.close()
        await draining
    finally:
        await engine.close()


def broken(**stage: Any) -> PipelineConfig:
    config = pipeline("mind", "voice", "voice").model_dump(mode="json")
    config["stages"][0] |= stage
    return PipelineConfig.model_validate(config)


async def test_an_unknown_model_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"stage 'thinker': there is no model 'nonesuch'; name a module under"):
        await Engine.start(broken(model="nonesuch"))


async def test_a_model_that_lacks_a_package_says_which() -> None:
    with pytest.raises(ConfigError, match="needs the package 'no_such_package'"):
        await Engine.start(broken(model="tests.engine.scripted.lacking"))


async def test_a_process_that_is_not_ready_in_time_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"not ready within 0\.001 s"):
        await start(supervision={"start_timeout_s": 0.001})


async def test_workers_die_with_the_hub_and_survive_ctrl_c() -> None:
    engine = await start()
    pids = [health.pid or 0 for health in engine.health().values()]
    try:
        for pid in pids:
            os.kill(pid, signal.SIGINT)
        caller = Caller(engine.open())
        caller.say(Order.FINISH)
        await caller.until(ended)
        assert [health.pid for health in engine.health().values()] == pids
    finally:
        await engine.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def conduct(engine: Engine) -> None:
    """A call as an agent makes it, with an interruption; it gives everything back however it ends."""
    session = engine.open()
    try:
        caller = Caller(session)
        caller.say(Order.SPEAK, Order.SPEAK)
        await caller.spoken(0, 2)
        session.interrupt(0, WORD_SAMPLES)
        await asyncio.sleep(0)
        caller.say(Order.FINISH)
        await caller.until(lambda event: isinstance(event, TurnEnd) and event.status is TurnStatus.DONE)
    finally:
        await session.close()


@types.coroutine
def cancelled_at(suspension: int, coroutine: Coroutine[Any, Any, None]) -> Generator[Any, None, bool]:
    """Run ``coroutine``, cancelled where it waits for the ``suspension``-th time; False when it never does."""
    for count in itertools.count():
        try:
            if count == suspension + 1:
                coroutine.throw(asyncio.CancelledError())
                raise AssertionError("it waits though it was cancelled")
            waiting = coroutine.send(None)
        except StopIteration:
            return False
        except asyncio.CancelledError:
            return True
        if count != suspension:
            yield waiting
    raise AssertionError


async def test_cancellation_at_any_await_leaks_no_session() -> None:
    engine = await start()
    try:
        cancelled = 0
        while await cancelled_at(cancelled, conduct(engine)):
            assert engine.load().sessions == 0
            cancelled += 1
        assert engine.load().sessions == 0
        assert cancelled > 3
    finally:
        await engine.close()


def children() -> str:
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()


@pytest.mark.parametrize("seconds", [0, 0.05, 0.15])
async def test_a_start_that_is_cancelled_leaves_no_process(seconds: float) -> None:
    before = children()
    task = asyncio.create_task(start())
    await asyncio.wait([task], timeout=seconds)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert children() == before


async def test_a_fault_in_the_hub_ends_one_session_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = await start()
    try:
        struck, other = Caller(engine.open()), Caller(engine.open())
        struck.say(Order.SPEAK)
        await struck.spoken(0, 1)

        def fault(message: FromStage | Taken) -> None:
            raise RuntimeError("a fault")

        monkeypatch.setattr(struck.session, "receive", fault)
        struck.say(Order.SPEAK)
        await struck.to_the_end()
        assert struck.ends == [(0, TurnStatus.FAILED, "w0 ")]
        other.say(Order.FINISH)
        await other.until(ended)
        assert engine.load().sessions == 1
    finally:
        await engine.close()


def test_what_a_stage_process_counts_is_counted_here() -> None:
    engine = Engine(pipeline("a", "a", "a"))
    dropped = DROPS.labels(what="test_frames", reason="full")
    before = dropped._value.get(), UNANSWERED._value.get()
    for message in (Counted("drops", (("what", "test_frames"), ("reason", "full")), 3), Counted("unanswered", (), 2)):
        engine.process_said(next(iter(engine._processes.values())), message)
    assert (dropped._value.get(), UNANSWERED._value.get()) == (before[0] + 3, before[1] + 2)
