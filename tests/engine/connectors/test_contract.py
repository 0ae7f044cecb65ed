"""The contract of connectors, over every one of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine import Fence
from duologue.engine.connectors import Chunk, Full, Missing, Parcel
from duologue.engine.connectors.inlet import CLOSED, UNOPENED
from duologue.engine.messages import CodecFrames
from tests.engine.connectors.edges import KINDS, Edge


def frames(number: int, epoch: int = 0, session: str = "s", *, seq: int | None = None,
           last: bool = False) -> CodecFrames:
    """Frames whose value is ``number``, in the one reply that there is in each epoch."""
    return CodecFrames(Fence(session, epoch, epoch, number if seq is None else seq), np.full((1, 8), number, np.int32),
                       last=last)


def numbers(chunks: list[Chunk], session: str = "s") -> list[int]:
    return [int(one.frames[0, 0]) for one in chunks if isinstance(one, CodecFrames) and one.fence.session == session]


@pytest.fixture(params=KINDS)
def edge(request: pytest.FixtureRequest) -> Edge:
    return Edge(request.param)


def opened(edge: Edge, *sessions: str) -> Edge:
    for session in sessions or ("s",):
        edge.open(session)
    edge.settle()
    return edge


def test_messages_of_a_session_are_filed_once_and_in_order(edge: Edge) -> None:
    opened(edge)
    for n in range(10):
        edge.producer.put(frames(n))
        edge.settle()
    assert numbers(edge.filed) == list(range(10))


def test_one_edge_carries_all_sessions_and_none_waits_for_another(edge: Edge) -> None:
    opened(edge, "s", "t")
    for n in range(4):
        edge.producer.put(frames(n, session="s"))
    edge.producer.put(frames(0, session="t"))
    for _ in range(2):
        edge.pump()
    edge.consumer.receive()
    assert (numbers(edge.filed, "s"), numbers(edge.filed, "t")) == ([0], [0])
    edge.settle()
    assert (numbers(edge.filed, "s"), numbers(edge.filed, "t")) == ([0, 1, 2, 3], [0])


def test_a_full_edge_takes_no_frames_and_loses_none(edge: Edge) -> None:
    opened(edge)
    for n in range(edge.capacity):
        edge.producer.put(frames(n))
    with pytest.raises(Full):
        edge.producer.put(frames(edge.capacity))
    edge.settle()
    assert numbers(edge.filed) == [0, 1, 2, 3]


def test_a_producer_is_held_before_its_edge_is_full_and_goes_on_when_its_messages_were_filed(edge: Edge) -> None:
    opened(edge)
    for n in range(2):
        edge.producer.put(frames(n))
        edge.pump()
    assert edge.producer.held == {"s": True}
    edge.producer.put(frames(2))
    edge.pump()
    assert edge.producer.held == {"s": True}
    edge.settle()
    assert edge.producer.held == {"s": False}


def test_one_sessions_back_pressure_holds_no_other(edge: Edge) -> None:
    opened(edge, "s", "t")
    for n in range(4):
        edge.producer.put(frames(n, session="s"))
    edge.producer.put(frames(0, session="t"))
    edge.pump()
    assert edge.producer.held == {"s": True}


def test_a_consumer_that_opens_late_finds_everything(edge: Edge) -> None:
    edge.open()
    edge.tell_producer()
    for n in range(3):
        edge.producer.put(frames(n))
        edge.pump()
    edge.consumer.receive()
    assert edge.filed == []
    edge.settle()
    assert numbers(edge.filed) == [0, 1, 2]


def test_what_a_consumer_cannot_file_yet_keeps_its_room(edge: Edge) -> None:
    edge.open()
    edge.tell_producer()
    for n in range(edge.capacity):
        edge.producer.put(frames(n))
    for _ in range(2 * edge.capacity):
        edge.pump()
        edge.consumer.receive()
    with pytest.raises(Full):
        edge.producer.put(frames(edge.capacity))


def test_a_message_of_a_coming_epoch_waits_for_the_hubs_word(edge: Edge) -> None:
    opened(edge)
    edge.interrupt(1)
    edge.tell_producer()
    edge.producer.put(frames(0, epoch=1))
    edge.pump()
    edge.consumer.receive()
    assert edge.filed == []
    edge.settle()
    assert [(epoch, chunk.fence.epoch) for _, epoch, chunk in edge.consumer.filed] == [(1, 1)]


def test_a_reply_that_ends_early_leaves_the_edge_to_the_next(edge: Edge) -> None:
    opened(edge)
    edge.producer.put(frames(0, last=True))
    edge.producer.close("s")
    edge.consumer.receive()
    edge.settle()
    edge.open(life=2)
    edge.settle()
    for n in range(edge.capacity):
        edge.producer.put(frames(n + 10, seq=n))
    edge.settle()
    assert [n for n in numbers(edge.filed) if n >= 10] == [10, 11, 12, 13]


def test_a_stale_epoch_never_surfaces_and_gives_its_room_back(edge: Edge) -> None:
    opened(edge)
    for n in range(edge.capacity):
        edge.producer.put(frames(n))
    edge.pump()
    edge.interrupt(1)
    edge.settle()
    for n in range(edge.capacity):
        edge.producer.put(frames(10 + n, epoch=1, seq=n))
    edge.settle()
    assert numbers(edge.filed) == [10, 11, 12, 13]


def test_a_message_of_an_earlier_life_never_surfaces(edge: Edge) -> None:
    opened(edge)
    edge.producer.put(frames(0))
    edge.pump()
    edge.open(life=2)
    edge.tell_consumer()
    edge.consumer.receive()
    edge.settle()
    assert edge.filed == []
    assert edge.consumer.inlets.drops["stale"] == 1


def test_what_comes_twice_is_filed_once(edge: Edge) -> None:
    opened(edge)
    for n in range(edge.capacity):
        edge.producer.put(frames(n))
        edge.pump(twice=True)
        edge.pump(twice=True)
        edge.consumer.receive()
    edge.settle()
    assert numbers(edge.filed) == [0, 1, 2, 3]


def test_a_message_that_is_missing_is_noticed_with_the_next(edge: Edge) -> None:
    opened(edge)
    with pytest.raises(Missing, match="message 0 of the edge did not come"):
        edge.consumer.inlets.accept(Parcel("s", 1, 1, frames(1)))


def test_closing_frees_what_either_end_has_of_a_session(edge: Edge) -> None:
    opened(edge)
    for n in range(edge.capacity):
        edge.producer.put(frames(n))
    edge.interrupt(1)
    edge.tell_producer()
    for _ in range(edge.capacity):
        edge.pump()
        edge.consumer.receive()
    edge.producer.put(frames(4, epoch=1, seq=0))
    edge.pump()
    edge.consumer.receive()
    edge.producer.close("s")
    edge.consumer.close("s")
    for _ in range(20):
        edge.pump()
        edge.consumer.receive()
    inlets = edge.consumer.inlets
    assert (inlets._inlets, inlets._unopened, inlets._news) == ({}, {}, {})
    outlets = edge.producer.outlets
    assert (outlets._outlets, list(outlets._turns), outlets._changed) == ({}, [], set())


def test_what_comes_of_a_session_that_is_over_is_not_taken_for_early() -> None:
    edge = opened(Edge("local"))
    edge.producer.put(frames(0))
    edge.consumer.close("s")
    edge.settle()
    assert edge.consumer.inlets._unopened == {}
    assert edge.consumer.inlets.drops["stale"] == 1


def test_what_a_consumer_remembers_of_sessions_it_was_never_told_of_is_bounded() -> None:
    edge = Edge("local")
    for n in range(UNOPENED + 10):
        edge.consumer.inlets.accept(Parcel(f"s{n}", 1, 0, frames(0, session=f"s{n}")))
    assert len(edge.consumer.inlets._unopened) == UNOPENED
    assert edge.consumer.inlets.drops["session_over"] == 10
    for n in range(CLOSED + 10):
        edge.consumer.inlets.open(f"t{n}", 1, 0)
        edge.consumer.inlets.close(f"t{n}")
    assert len(edge.consumer.inlets._closed) == CLOSED


SESSIONS = ("s", "t")
ACTIONS = st.lists(st.tuples(
    st.sampled_from(["put", "put", "put", "send", "send", "send twice", "receive", "receive", "tell producer",
                     "tell consumer", "interrupt", "open", "kill producer", "kill consumer"]),
    st.sampled_from(SESSIONS)), max_size=80)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(kind=st.sampled_from(KINDS), capacity=st.integers(1, 5), actions=ACTIONS)
def test_whatever_comes_late_or_twice_or_is_lost_each_message_is_filed_once_in_order_and_in_its_epoch(
        kind: str, capacity: int, actions: list[tuple[str, str]]) -> None:
    edge = Edge(kind, capacity)
    lives = dict.fromkeys(SESSIONS, 0)
    epochs = dict.fromkeys(SESSIONS, 0)
    told: dict[str, tuple[int, int]] = {}
    """Life and epoch that the producer has been told of."""
    put: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    count = 0

    def open_again(*sessions: str) -> None:
        for session in sessions:
            lives[session] += 1
            edge.open(session, lives[session], epochs[session])

    def tell_producer() -> None:
        if edge.to_producer:
            session, epoch, life = edge.to_producer[0]
            edge.tell_producer()
            told[session] = life if life is not None else told[session][0], epoch

    open_again(*SESSIONS)
    for action, session in actions:
        match action:
            case "put" if session in told:
                life, epoch = told[session]
                try:
                    edge.producer.put(frames(count, epoch, session, seq=len(put[session, life, epoch])))
                except Full:
                    continue
                put[session, life, epoch].append(count)
                count += 1
            case "send" | "send twice":
                edge.pump(twice=action == "send twice")
            case "receive":
                edge.consumer.receive()
            case "tell producer":
                tell_producer()
            case "tell consumer":
                edge.tell_consumer()
            case "interrupt":
                epochs[session] += 1
                edge.interrupt(epochs[session], session)
            case "open":
                open_again(session)
            case "kill producer" | "kill consumer":
                if action == "kill producer" or kind == "local":
                    told.clear()
                    edge.lose_producer()
                else:
                    edge.lose_consumer()
                # What an end was not told of before it was lost, it is told of as one: the session opens again.
                open_again(*SESSIONS)
    while edge.to_producer:
        tell_producer()
    edge.settle()
    for session in SESSIONS:
        final = lives[session], epochs[session]
        for _ in range(2):
            edge.producer.put(frames(count, final[1], session, seq=len(put[session, *final])))
            put[session, *final].append(count)
            count += 1
            edge.settle()
    filed: defaultdict[tuple[str, int, int], list[int]] = defaultdict(list)
    for life, epoch, chunk in edge.consumer.filed:
        assert chunk.fence.epoch == epoch, "filed in an epoch it is not of"
        filed[chunk.fence.session, life, epoch] += numbers([chunk], chunk.fence.session)
    for key, seen in filed.items():
        assert seen == put[key][:len(seen)], "out of order, twice or with a gap"
    for session in SESSIONS:
        key = session, lives[session], epochs[session]
        assert filed[key] == put[key], "lost"
