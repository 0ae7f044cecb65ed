from __future__ import annotations

import numpy as np
import pytest

from duologue.engine import Fence, ReplyText
from duologue.engine.connectors import Full, Outlet
from duologue.engine.connectors.base import Parcel
from duologue.engine.connectors.inlet import Inlet
from duologue.engine.messages import CodecFrames, Conditioning


def text(start: int, said: str = "x", *, turn: int = 0, epoch: int = 0, rate: float = 1.0, last: bool = False,
         conditioned: bool = False) -> ReplyText:
    conditioning = Conditioning(np.array([start], np.int32), np.full((1, 4), start, np.float32),
                                np.array([start + len(said)], np.int32)) if conditioned else None
    return ReplyText(Fence("s", epoch, turn, start), start, said, last, rate, conditioning)


def frames(number: int) -> CodecFrames:
    return CodecFrames(Fence("s", 0, 0, number), np.zeros((1, 1), np.float32))


def drain(outlet: Outlet) -> list[Parcel]:
    parcels = []
    while (parcel := outlet.next()) is not None:
        parcels.append(parcel)
        outlet.sent()
    return parcels


def full(capacity: int = 2) -> Outlet:
    """An outlet with all it may have under way."""
    outlet = Outlet("s", 1, capacity)
    for n in range(capacity):
        outlet.put(text(n))
    assert len(drain(outlet)) == capacity
    return outlet


def test_text_that_finds_no_room_is_joined_and_goes_in_one_piece() -> None:
    outlet = full()
    for start in range(2, 9):
        outlet.put(text(start, "abcdefg"[start - 2], last=start == 8))
    assert drain(outlet) == []
    outlet.filed(1, 1)
    (parcel,) = drain(outlet)
    assert parcel.chunk == ReplyText(Fence("s", 0, 0, 2), 2, "abcdefg", last=True)
    assert parcel.number == 2


def test_joined_text_has_the_conditioning_of_all_its_tokens() -> None:
    outlet = full(1)
    for start in range(1, 4):
        outlet.put(text(start, conditioned=True))
    outlet.filed(1, 1)
    (parcel,) = drain(outlet)
    assert isinstance(parcel.chunk, ReplyText)
    assert parcel.chunk.conditioning is not None
    np.testing.assert_array_equal(parcel.chunk.conditioning.tokens, [1, 2, 3])
    np.testing.assert_array_equal(parcel.chunk.conditioning.rows[:, 0], [1, 2, 3])
    np.testing.assert_array_equal(parcel.chunk.conditioning.ends, [2, 3, 4])


@pytest.mark.parametrize("other", [text(3, turn=1), text(3, epoch=1), text(3, rate=0.5), text(4),
                                   text(3, conditioned=True), frames(3)])
def test_what_is_not_said_alike_is_not_joined(other: ReplyText | CodecFrames) -> None:
    outlet = Outlet("s", 1, 4)
    for n in range(3):
        outlet.put(text(n))
    drain(outlet)
    outlet.put(text(2))
    if isinstance(other, CodecFrames):
        with pytest.raises(Full):
            outlet.put(other)
        return
    outlet.put(other)
    outlet.filed(1, 2)
    assert [parcel.chunk.fence.turn for parcel in drain(outlet)] == [0, other.fence.turn]


def test_text_that_cannot_be_joined_is_bounded_too() -> None:
    outlet = full(2)
    outlet.put(text(2, turn=1))
    outlet.put(text(2, turn=2))
    with pytest.raises(Full):
        outlet.put(text(2, turn=3))


def test_no_more_than_the_capacity_is_under_way() -> None:
    outlet = full(3)
    for start in range(3, 9):
        outlet.put(text(start))
    assert outlet.next() is None
    outlet.filed(1, 1)
    assert len(drain(outlet)) == 1


def test_what_was_filed_in_an_earlier_life_or_said_twice_makes_no_room() -> None:
    outlet = full(2)
    outlet.filed(0, 2)
    assert outlet.room == 0
    for _ in range(2):
        outlet.filed(1, 1)
        assert outlet.room == 1


def test_numbers_go_on_after_what_an_interruption_dropped() -> None:
    outlet = full(2)
    outlet.put(text(2))
    assert outlet.raise_epoch(1) == 1
    outlet.filed(1, 2)
    outlet.put(text(0, epoch=1))
    assert [parcel.number for parcel in drain(outlet)] == [2]


def test_what_waits_for_an_epoch_does_not_outlive_its_life() -> None:
    inlet = Inlet(4)
    inlet.open(1, 0)
    assert inlet.accept(Parcel("s", 1, 0, text(0, epoch=1))) == []
    assert inlet.open(2, 0) == []
    assert inlet.raise_epoch(1) == []
    assert inlet.stale == 1
