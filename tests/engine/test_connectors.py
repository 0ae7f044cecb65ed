"""The contract every connector keeps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Fence, ReplyText
from duologue.engine.connectors import Connector, Full, LocalConnector, SocketConnector

CONNECTORS = [LocalConnector, SocketConnector]


def message(number: int, epoch: int = 0) -> ReplyText:
    return ReplyText(Fence("s", epoch, 0, number), number, "x")


@pytest.fixture(params=CONNECTORS)
def connector(request: pytest.FixtureRequest) -> Connector:
    made = request.param(4)
    assert isinstance(made, Connector)
    return made


def test_messages_come_out_once_and_in_order(connector: Connector) -> None:
    messages = [message(n) for n in range(4)]
    for one in messages:
        connector.put(one)
    assert connector.take() == messages
    assert connector.take() == []


def test_a_full_edge_takes_nothing_and_loses_nothing(connector: Connector) -> None:
    for n in range(4):
        connector.put(message(n))
    assert connector.room == 0
    with pytest.raises(Full):
        connector.put(message(4))
    assert [one.fence.seq for one in connector.take()] == [0, 1, 2, 3]


def test_room_comes_back_when_the_consumer_has_filed(connector: Connector) -> None:
    for n in range(4):
        connector.put(message(n))
    connector.taken(len(connector.take()))
    assert connector.room == 4
    connector.put(message(4))
    assert [one.fence.seq for one in connector.take()] == [4]


def test_what_waits_of_an_old_epoch_is_dropped_and_counted(connector: Connector) -> None:
    connector.put(message(0, epoch=1))
    connector.put(message(1, epoch=2))
    assert connector.abort(2) == 1
    assert connector.room == 3
    assert [one.fence.epoch for one in connector.take()] == [2]


def test_a_consumer_that_comes_late_finds_everything(connector: Connector) -> None:
    assert connector.take() == []
    connector.put(message(0))
    assert len(connector.take()) == 1


def test_messages_under_way_keep_their_room_on_a_socket() -> None:
    connector = SocketConnector(2)
    connector.put(message(0))
    connector.put(message(1))
    connector.take()
    assert connector.room == 0
    connector.taken(1)
    assert connector.room == 1


@given(st.sampled_from(CONNECTORS), st.integers(1, 5),
       st.lists(st.sampled_from(["put", "take", "taken", "abort"]), max_size=60))
def test_no_order_of_calls_loses_doubles_or_exceeds(
        kind: type[Connector], capacity: int, calls: list[str]) -> None:
    connector = kind(capacity)
    put, got, under_way, epoch = 0, list[int](), 0, 0
    dropped = 0
    for call in calls:
        match call:
            case "put" if connector.room:
                connector.put(message(put, epoch))
                put += 1
            case "put":
                with pytest.raises(Full):
                    connector.put(message(put, epoch))
            case "take":
                taken = connector.take()
                under_way += len(taken)
                got += [one.fence.seq for one in taken]
                assert all(one.fence.epoch == epoch for one in taken)
            case "taken" if under_way:
                connector.taken(1)
                under_way -= 1
            case "abort":
                epoch += 1
                dropped += connector.abort(epoch)
        assert 0 <= connector.room <= capacity
    got += [one.fence.seq for one in connector.take()]
    assert got == sorted(set(got))
    assert len(got) + dropped == put
