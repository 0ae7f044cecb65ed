"""A session gives back all it took, however it ends, and its end is nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from duologue.engine import (
    Decision,
    Health,
    Refused,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    outbox,
)
from duologue.engine.messages import CodecFrames
from duologue.engine.wire import FromStage, ToStage
from duologue.metrics import DROPS
from tests.engine.house import Guest, House
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline

PLACEMENTS = [("all", "all", "all"), ("mind", "voice", "voice"), ("mind", "talk", "sound")]
placed = pytest.mark.parametrize("placement", PLACEMENTS, ids="-".join)


def ends(guest: Guest) -> list[TurnStatus]:
    return [event.status for event in guest.events if isinstance(event, TurnEnd)]


def left_behind(house: House) -> dict[str, int]:
    """Everything that is kept by session anywhere in the engine and its workers, and how much of it there is."""
    engine = house.engine
    placement = engine._placement
    left = {"hub.sessions": len(engine._sessions), "hub.opened_at": len(engine._opened_at),
            "hub.places": len(placement._places), "hub.waiting": engine._admission.waiting,
            "hub.replicas": sum(len(replica.sessions) for lane in placement._replicas for replica in lane),
            "hub.headroom": sum(replica.headroom.sessions for lane in placement._replicas for replica in lane)}
    for name, process in house.processes.items():
        worker = process.worker
        left[f"{name}.inbox"] = len(process._inbox)
        left[f"{name}.seats"] = sum(map(len, worker._seats.values()))
        for stage, made in worker.stages.items():
            left[f"{name}.{stage}"] = len(vars(made)["talks"])
        for stage, outlets in worker._outlets.items():
            left[f"{name}.{stage}.outlets"] = (len(outlets._outlets) + len(outlets._turns) + len(outlets._changed))
        for stage, inlets in worker._inlets.items():
            left[f"{name}.{stage}.inlets"] = len(inlets._inlets) + len(inlets._unopened) + len(inlets._news)
    return left


async def hang_up_while_listening(house: House, guest: Guest) -> None:
    guest.say(Order.LISTEN, Order.HEAR)
    house.work()
    await guest.session.close()


async def hang_up_at_once(house: House, guest: Guest) -> None:
    await guest.session.close()


async def hang_up_in_a_reply(house: House, guest: Guest) -> None:
    guest.say(Order.SPEAK, Order.BURST, Order.HOLD_TALKER)
    for process in house.processes.values():
        process.work()
    await guest.session.close()


async def hang_up_after_an_interruption(house: House, guest: Guest) -> None:
    guest.say(Order.BURST)
    house.work()
    guest.read()
    guest.session.interrupt(0, WORD_SAMPLES)
    guest.say(Order.SPEAK)
    for process in house.processes.values():
        process.work()
    await guest.session.close()


async def fail_in_the_thinker(house: House, guest: Guest) -> None:
    guest.say(Order.SPEAK, Order.FAIL)


async def fail_in_the_talker_twice(house: House, guest: Guest) -> None:
    # The first reply has to be over: nobody waits for more of it, so nothing more of it is spoken.
    guest.say(Order.FAIL_TALKER, Order.FINISH)
    house.work()
    guest.say(Order.FAIL_TALKER)


async def break_a_stage(house: House, guest: Guest) -> None:
    guest.say(Order.SPEAK, Order.BREAK_TALKER)
    house.work()
    await guest.session.close()


async def lose_a_process(house: House, guest: Guest) -> None:
    guest.say(Order.BURST)
    last = list(house.processes.values())[-1]
    last.work()
    last.die()
    last.begin()
    await guest.session.close()


ENDINGS: list[Callable[[House, Guest], Any]] = [
    hang_up_while_listening, hang_up_at_once, hang_up_in_a_reply, hang_up_after_an_interruption,
    fail_in_the_thinker, fail_in_the_talker_twice, break_a_stage, lose_a_process]


@placed
async def test_sessions_opened_and_closed_however_they_end_leave_nothing_behind(
        placement: tuple[str, str, str]) -> None:
    house = House(pipeline(*placement))
    assert not any(left_behind(house).values())
    for ending in ENDINGS * 4:
        guests = [Guest(house.engine.open()) for _ in range(2)]
        for guest in guests:
            await ending(house, guest)
        house.work()
        left = left_behind(house)
        assert not any(left.values()), (ending.__name__, {name: count for name, count in left.items() if count})
        assert house.engine.load().sessions == 0


async def test_an_open_that_fails_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(pipeline("mind", "voice", "voice"))

    def fault(message: ToStage) -> None:
        raise OSError("a fault")

    with monkeypatch.context() as patch:
        patch.setattr(house.processes["voice"], "send", fault)
        with pytest.raises(OSError, match="a fault"):
            house.engine.open()
    house.work()
    assert not any(left_behind(house).values())
    async with asyncio.timeout(10):
        await house.engine.drain()


async def test_a_fault_in_rebuilding_a_session_ends_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(pipeline("mind", "voice", "voice"))
    struck, other = Guest(house.engine.open()), Guest(house.engine.open())
    for guest in (struck, other):
        guest.say(Order.SPEAK)
    house.work()

    def fault(stages: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(struck.session._state, "restored", fault)
    house.processes["voice"].die()
    house.processes["voice"].begin()
    other.say(Order.FINISH)
    house.work()
    struck.read()
    other.read()
    assert ends(struck) == [TurnStatus.FAILED]
    assert ends(other) == [TurnStatus.DONE]
    assert house.engine.load().sessions == 1


async def test_an_agent_that_never_reads_ends_its_own_session_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "MAX_EVENTS", 40)
    house = House(pipeline("mind", "voice", "voice"))
    deaf, other = Guest(house.engine.open()), Guest(house.engine.open())
    most = 0
    for _ in range(40):
        for guest in (deaf, other):
            guest.say(Order.SPEAK)
        house.work()
        other.read()
        most = max(most, len(deaf.session._state.waiting))
    other.say(Order.FINISH)
    house.work()
    other.read()
    assert ends(other) == [TurnStatus.DONE]
    # What makes the outbox full, and what may come with the end.
    assert most <= 40 + 1
    assert house.engine.load().sessions == 1
    deaf.read()
    assert ends(deaf) == [TurnStatus.FAILED]


async def test_a_reader_that_is_cancelled_loses_no_event() -> None:
    house = House(pipeline("mind", "voice", "voice"))
    guest = Guest(house.engine.open())

    async def read(most: int) -> None:
        async for event in guest.session.outputs():
            guest.events.append(event)
            if len(guest.events) == most:
                # Whoever waits here is cancelled while it deals with an event.
                await asyncio.sleep(3600)

    for stop_at in range(1, 8):
        guest.say(Order.SPEAK)
        house.work()
        task = asyncio.create_task(read(stop_at))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
    guest.say(Order.FINISH)
    house.work()
    guest.read()
    assert [event.unit for event in guest.events if isinstance(event, Decision)] == list(range(8))
    assert [event.fence.seq for event in guest.events if isinstance(event, ReplyAudio)] == list(range(8))
    assert ends(guest) == [TurnStatus.DONE]


async def test_a_refusal_has_its_reason_and_takes_no_place() -> None:
    house = House(pipeline("mind", "voice", "voice", admission={"target_load": 1e-9, "max_waiting": 1}))
    engine = house.engine
    guest = Guest(engine.open())
    guest.say(Order.LISTEN)
    house.work()

    def refusal(ticket: str | None = None) -> Refused:
        with pytest.raises(Refused) as refused:
            engine.open(ticket=ticket)
        assert engine.load().sessions == len(engine._placement._places) == len(engine._opened_at)
        return refused.value

    waits = refusal()
    assert (waits.reason, waits.position) == ("capacity", 1)
    assert refusal().reason == "queue_full"
    assert refusal(waits.ticket).reason == "capacity"
    assert engine.load().waiting == 1
    house.processes["voice"].give_up()
    assert ends(guest) == []
    assert refusal().reason == "stage_down"
    assert refusal(waits.ticket).reason == "stage_down"
    # The session that the process served is over, so nobody is waited for.
    async with asyncio.timeout(10):
        await engine.drain()
    assert refusal(waits.ticket).reason == "draining"


@placed
async def test_a_process_that_dies_while_draining_is_rebuilt_and_the_drain_waits_for_its_sessions(
        placement: tuple[str, str, str]) -> None:
    house = House(pipeline(*placement))
    guests = [Guest(house.engine.open()) for _ in range(3)]
    for guest in guests:
        guest.say(Order.SPEAK)
    house.work()
    draining = asyncio.create_task(house.engine.drain())
    await asyncio.sleep(0)
    for name, process in house.processes.items():
        process.die()
        # One hangs up while nobody is there to be told.
        if name == list(house.processes)[-1]:
            await guests[2].session.close()
        with pytest.raises(Refused, match="shut down"):
            house.engine.open()
        process.begin()
        with pytest.raises(Refused, match="shut down"):
            house.engine.open()
        assert not draining.done()
    for guest in guests[:2]:
        guest.say(Order.FINISH)
    house.work()
    for guest in guests:
        guest.read()
    assert [ends(guest) for guest in guests] == [[TurnStatus.DONE], [TurnStatus.DONE], [TurnStatus.INTERRUPTED]]
    await asyncio.sleep(0)
    assert not draining.done()
    for guest in guests:
        await guest.session.close()
    async with asyncio.timeout(10):
        await draining
    house.work()
    assert not any(left_behind(house).values())


async def test_a_process_given_up_while_draining_ends_its_sessions_and_the_drain() -> None:
    house = House(pipeline("mind", "voice", "voice"))
    guest = Guest(house.engine.open())
    guest.say(Order.SPEAK)
    house.work()
    draining = asyncio.create_task(house.engine.drain())
    await asyncio.sleep(0)
    house.processes["mind"].die()
    assert not draining.done()
    house.processes["mind"].give_up()
    guest.read()
    assert ends(guest) == [TurnStatus.FAILED]
    assert [event.up for event in guest.events if isinstance(event, Health)] == [False, False]
    async with asyncio.timeout(10):
        await draining


@placed
async def test_of_no_stage_does_anything_surface_that_an_interruption_overtook(
        placement: tuple[str, str, str]) -> None:
    """Whichever stage it comes from, and however late: it is dropped, and the drop is counted."""
    house = House(pipeline(*placement))
    for late in ("thinker", "talker", "codec"):
        guest = Guest(house.engine.open())
        guest.say(Order.SPEAK, Order.BURST)
        house.work()
        guest.read()
        old = [one.message for one in house.crossed if isinstance(one.message, FromStage)
               and one.message.stage == late and isinstance(one.message.message, ReplyText | CodecFrames | ReplyAudio)
               and one.message.message.fence.session == guest.session.id]
        guest.session.interrupt(0, WORD_SAMPLES)
        guest.read()
        dropped = DROPS.labels(what="message", reason="stale")._value.get()
        for message in old:
            guest.session.receive(message)
        assert guest.read() == []
        assert DROPS.labels(what="message", reason="stale")._value.get() == dropped + len(old)
        guest.say(Order.FINISH)
        house.work()
        fresh = guest.read()
        assert {event.fence.epoch for event in fresh if isinstance(event, ReplyAudio)} == {guest.session._state.epoch}
        await guest.session.close()


async def test_a_session_waits_for_a_replica_that_is_being_restarted_when_its_own_is_given_up() -> None:
    house = House(pipeline("mind", "voice", "voice", processes={"mind": {"replicas": 2}}))
    guest = Guest(house.engine.open())
    guest.say(Order.SPEAK)
    house.work()
    house.processes["mind/1"].die()
    house.processes["mind/0"].give_up()
    guest.say(Order.FINISH)
    house.work()
    guest.read()
    assert ends(guest) == []
    house.processes["mind/1"].begin()
    house.work()
    guest.read()
    assert ends(guest) == [TurnStatus.DONE]
    assert [event.unit for event in guest.events if isinstance(event, Decision)] == [0, 1]
    assert [event.up for event in guest.events if isinstance(event, Health)] == [False, True]
    house.processes["mind/1"].give_up()
    guest.read()
    assert house.engine.load().sessions == 0
