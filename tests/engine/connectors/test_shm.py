from __future__ import annotations

import errno
import os
import select

import numpy as np
import pytest
from pydantic import ValidationError

from duologue.engine import ConfigError, Fence, ReplyText
from duologue.engine.config import EdgeConfig
from duologue.engine.connectors import Filed, Parcel, ShmEdge, ShmReceiver, ShmSender
from duologue.engine.messages import CodecFrames, Conditioning


def edge(**changes: int) -> ShmEdge:
    return ShmEdge.create(EdgeConfig.model_validate({"source": "a", "target": "b", "connector": "shm", **changes}))


def parcel(number: int, tokens: int = 20, width: int = 4096) -> Parcel:
    rows = np.random.default_rng(number).standard_normal((tokens, width)).astype(np.float32)
    ids = np.arange(tokens, dtype=np.int32)
    text = ReplyText(Fence("s", 0, 0, number), 0, "x", conditioning=Conditioning(ids, rows, ids))
    return Parcel("s", 1, number, text)


def rows_of(parcel: Parcel) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert isinstance(parcel.chunk, ReplyText)
    assert parcel.chunk.conditioning is not None
    return parcel.chunk.conditioning.rows


def readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def test_hidden_rows_arrive_aligned_in_memory_of_their_own() -> None:
    made = edge()
    sender, receiver = ShmSender(made), ShmReceiver(made)
    assert sender.send(parcel(0))
    sender.flush()
    (got,) = receiver.receive()
    np.testing.assert_array_equal(rows_of(got), rows_of(parcel(0)))
    assert rows_of(got).flags.aligned
    assert rows_of(got).flags.writeable
    made.close()


def test_a_message_larger_than_the_ring_arrives() -> None:
    made = edge(ring_bytes=1 << 16)
    sender, receiver = ShmSender(made), ShmReceiver(made)
    assert sender.send(parcel(0))
    assert not sender.send(parcel(1)), "only one may be half written"
    got: list[Parcel] = []
    for _ in range(100):
        sender.flush()
        got += receiver.receive()
    assert len(got) == 1
    np.testing.assert_array_equal(rows_of(got[0]), rows_of(parcel(0)))
    assert sender.send(parcel(1))
    made.close()


def test_doorbells_ring_for_news_and_for_space_and_for_nothing_else() -> None:
    made = edge(ring_bytes=1 << 16)
    sender, receiver = ShmSender(made), ShmReceiver(made)
    assert not readable(receiver.fileno())
    sender.send(parcel(0, tokens=1, width=8))
    assert not readable(receiver.fileno())
    sender.flush()
    assert readable(receiver.fileno())
    receiver.clear()
    assert not readable(receiver.fileno())
    receiver.receive()
    assert not readable(sender.fileno())
    receiver.file([Filed("s", 1, 1)])
    assert readable(sender.fileno())
    sender.clear()
    assert sender.filed() == [Filed("s", 1, 1)]
    number = 1
    while sender.send(parcel(number)):
        number += 1
    sender.flush()
    assert not readable(sender.fileno())
    receiver.receive()
    assert readable(sender.fileno())
    made.close()


def test_of_many_things_filed_the_latest_total_is_told_when_there_is_no_space_for_each() -> None:
    made = edge()
    sender, receiver = ShmSender(made), ShmReceiver(made)
    for count in range(1, 5000):
        receiver.file([Filed("s", 1, count)])
    last = 0
    for _ in range(100):
        for filed in sender.filed():
            assert filed.count > last
            last = filed.count
        receiver.receive()
    assert last == 4999
    made.close()


def test_a_new_consumer_begins_with_what_is_sent_from_then_on() -> None:
    made = edge()
    sender = ShmSender(made)
    sender.send(parcel(0, 1, 8))
    receiver = ShmReceiver(made)
    assert receiver.receive() == []
    sender.send(parcel(1, 1, 8))
    assert [one.number for one in receiver.receive()] == [1]
    made.close()


def test_codes_and_frames_keep_their_type() -> None:
    made = edge()
    sender, receiver = ShmSender(made), ShmReceiver(made)
    for frames in (np.arange(25, dtype=np.int32)[:, None], np.ones((2, 3), np.float32)):
        sender.send(Parcel("s", 1, 0, CodecFrames(Fence("s", 0, 0, 0), frames)))
        (got,) = receiver.receive()
        assert isinstance(got.chunk, CodecFrames)
        assert got.chunk.frames.dtype == frames.dtype
        np.testing.assert_array_equal(got.chunk.frames, frames)
    made.close()


def test_memory_that_cannot_be_had_is_a_config_error_that_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(os, "posix_fallocate", no_memory)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(ConfigError, match=r"edge a -> b: .*\(Cannot allocate memory\); set a smaller ring_bytes"):
        edge()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_ring_size_is_for_shared_memory_only() -> None:
    with pytest.raises(ValidationError, match=r"edge a -> b: ring_bytes is the size of shared memory.* leave it out"):
        EdgeConfig(source="a", target="b", connector="socket", ring_bytes=1 << 20)
