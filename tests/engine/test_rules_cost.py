"""What a unit costs does not depend on how long the call has been: counted, not timed."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import duologue.engine
from duologue.engine import CallerText, Decision, TurnEnd
from duologue.engine.journal import Journal
from duologue.engine.wire import FromStage, ToStage
from tests.engine.house import Guest, House
from tests.engine.scripted import WORD_SAMPLES, Order, pipeline

HUB = str(Path(duologue.engine.__file__).parent)
PLACEMENTS = [("all", "all", "all"), ("mind", "talk", "sound")]
placed = pytest.mark.parametrize("placement", PLACEMENTS, ids="-".join)
ROUND = (Order.HEAR, Order.SPEAK, Order.SPEAK, Order.FINISH, Order.LISTEN, Order.SPEAK, Order.SPEAK)
"""One exchange: the caller speaks, is answered, and cuts the second answer."""


def exchange(house: House, guest: Guest, number: int) -> None:
    guest.session.inject(CallerText("hello"))
    for order in ROUND:
        guest.say(order)
        house.work()
        guest.read()
    guest.session.interrupt(2 * number + 1, WORD_SAMPLES)
    house.work()
    guest.read()


def operations(work: Callable[[], None]) -> int:
    """Bytecodes of the engine that ``work`` executes: a walk over all of a call's past shows, in any form."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call":
            if not frame.f_code.co_filename.startswith(HUB):
                return None
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
        elif event == "opcode":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@placed
async def test_an_exchange_costs_the_same_however_long_the_call_has_been(placement: tuple[str, str, str]) -> None:
    house = House(pipeline(*placement, journal_units=32))
    guest = Guest(house.engine.open())
    early = late = 0
    for number in range(80):
        if number == 20:
            # Whatever is kept of only so many replies or units is full by now.
            early = operations(lambda: exchange(house, guest, 20))
        elif number == 79:
            late = operations(lambda: exchange(house, guest, 79))
        else:
            exchange(house, guest, number)
    assert len([event for event in guest.events if isinstance(event, TurnEnd)]) == 160
    assert early > 1000
    assert late <= early * 1.02


@placed
async def test_nothing_that_crosses_between_processes_grows_with_the_call(placement: tuple[str, str, str]) -> None:
    house = House(pipeline(*placement, journal_units=32))
    guest = Guest(house.engine.open())

    def crossing(number: int) -> tuple[int, dict[str, int]]:
        """How many messages cross in an exchange, and the size of the largest of each kind."""
        for process in house.processes.values():
            process.crossed.clear()
        exchange(house, guest, number)
        sizes: dict[str, int] = defaultdict(int)
        for one in house.crossed:
            inner = one.message.message if isinstance(one.message, ToStage | FromStage) else one.message
            sizes[type(inner).__name__] = max(sizes[type(inner).__name__], one.size)
        return len(house.crossed), sizes

    every = [crossing(number) for number in range(60)]
    (count, sizes), (count_later, sizes_later) = every[20], every[59]
    assert count == count_later
    assert {"AppendUnit", "Decision", "ReplyText", "ReplyAudio", "Interrupt"} <= sizes.keys() == sizes_later.keys()
    # Numbers of units and replies take some more bytes; frames end at multiples of 16.
    assert all(sizes_later[name] <= sizes[name] + 16 for name in sizes)


async def test_the_journal_is_read_when_a_stage_is_rebuilt_and_at_no_other_time(
        monkeypatch: pytest.MonkeyPatch) -> None:
    house = House(pipeline("mind", "voice", "voice"))
    guest = Guest(house.engine.open())
    reads: list[str] = []
    for name in ("opening", "history"):
        real = getattr(Journal, name)

        def counted(*args: Any, real: Any = real, name: str = name) -> Any:
            reads.append(name)
            return real(*args)

        monkeypatch.setattr(Journal, name, counted)
    for number in range(20):
        exchange(house, guest, number)
    assert reads == []
    house.processes["mind"].die()
    house.processes["mind"].begin()
    assert reads == ["opening", "history"]
    exchange(house, guest, 20)
    assert reads == ["opening", "history"]


async def test_a_session_that_only_listens_for_ever_stays_alive_and_costs_two_messages_a_unit() -> None:
    house = House(pipeline("mind", "voice", "voice", journal_units=50))
    guest = Guest(house.engine.open())
    state = guest.session._state

    def held() -> tuple[int, ...]:
        journal = state._journal
        return (len(journal._records), len(journal._units), len(journal._outputs), len(state.waiting),
                len(state._replies._continue_by), len(guest.session._given_at), len(state._turns._turns))

    def listen() -> None:
        guest.say(Order.LISTEN)
        house.work()
        guest.read()

    for _ in range(100):
        listen()
    before, crossed, early = held(), len(house.crossed), operations(listen)
    for _ in range(1000):
        listen()
    assert held() == before
    assert len(house.crossed) - crossed == 2 * 1001
    assert not house.processes["voice"].worker.stages["talker"].ready
    assert operations(listen) <= early * 1.02
    # And it answers as if nothing had been.
    guest.say(Order.FINISH)
    house.work()
    guest.read()
    assert len([event for event in guest.events if isinstance(event, Decision)]) == guest._units
    assert [event.text for event in guest.events if isinstance(event, TurnEnd)] == ["w0 "]


async def test_replies_that_were_all_cut_leave_no_more_behind_than_the_last_ones() -> None:
    house = House(pipeline("mind", "voice", "voice", journal_units=32))
    guest = Guest(house.engine.open())
    state = guest.session._state
    kept: list[tuple[int, ...]] = []
    for number in range(60):
        guest.say(Order.SPEAK, Order.SPEAK)
        house.work()
        guest.read()
        guest.session.interrupt(number, WORD_SAMPLES)
        house.work()
        guest.read()
        edges = state._feed._edges.values()
        kept.append((len(state._turns._turns), len(state._turns.open), len(state.waiting),
                     len(state._replies._continue_by), len(state._journal._units),
                     sum(len(edge._waiting) for edge in edges), len(state._effects.sends),
                     sum(len(process._inbox) for process in house.processes.values())))
    assert kept[34] == kept[59]
    assert kept[59][1:4] == (0, 0, 0)
