from __future__ import annotations

import itertools
import os
import random
import select
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import EdgeConfig
from duologue.engine.connectors import ShmEdge
from duologue.engine.connectors.ring import HEADER_BYTES, Ring, RingReader, RingWriter
from duologue.engine.connectors.shm import Bell

SIZE = 256


class Bells:
    def __init__(self) -> None:
        self.reader = self.writer = 0

    def ring_reader(self) -> None:
        self.reader += 1

    def ring_writer(self) -> None:
        self.writer += 1


def ends(ring: Ring) -> tuple[RingWriter, RingReader, Bells]:
    bells = Bells()
    return RingWriter(ring, bells.ring_reader), RingReader(ring, bells.ring_writer), bells


def new_ring(size: int = SIZE) -> Ring:
    return Ring(memoryview(bytearray(HEADER_BYTES + size)))


def test_messages_come_out_as_they_went_in_over_the_rings_end() -> None:
    writer, reader, _ = ends(new_ring())
    for n in range(100):
        message = bytes([n]) * (n % 40 + 1)
        writer.write([message[:5], memoryview(message)[5:]])
        assert [bytes(one) for one in reader.read()] == [message]


def test_a_message_larger_than_the_ring_goes_through_it() -> None:
    writer, reader, bells = ends(new_ring())
    message = random.Random(1).randbytes(10 * SIZE + 3)
    writer.write([message])
    got, turns = reader.read(), 0
    while not got:
        assert not writer.ready or turns
        writer.flush()
        got = reader.read()
        turns += 1
    assert bytes(got[0]) == message
    assert turns > 9
    assert bells.writer >= turns - 1, "the reader rings for a writer that waits for space"


def test_a_reader_is_rung_for_what_was_written_and_only_once() -> None:
    writer, reader, bells = ends(new_ring())
    writer.write([b"a"])
    writer.write([b"b"])
    assert bells.reader == 0
    writer.flush()
    writer.flush()
    assert bells.reader == 1
    reader.read()
    assert bells.writer == 0, "nobody waits for space"


def test_a_writer_that_dies_before_it_commits_leaves_nothing_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = new_ring()
    writer, reader, _ = ends(ring)
    writer.write([b"whole"])

    def die() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ring, "barrier", die)
        with pytest.raises(KeyboardInterrupt):
            writer.write([b"torn"])
    assert [bytes(one) for one in reader.read()] == [b"whole"]
    writer, _, _ = ends(ring)
    writer.write([b"next"])
    assert [bytes(one) for one in reader.read()] == [b"next"]


def test_the_rest_of_a_message_whose_writer_or_reader_was_lost_is_passed_over() -> None:
    ring = new_ring()
    writer, reader, _ = ends(ring)
    writer.write([bytes(2 * SIZE)])
    reader.read()
    writer, _, _ = ends(ring)
    writer.write([b"of the new writer"])
    assert [bytes(one) for one in reader.read()] == [b"of the new writer"]
    writer.write([bytes(2 * SIZE)])
    reader.read()
    writer.flush()
    _, reader, _ = ends(ring)
    reader.skip()
    while not writer.ready:
        assert reader.read() == []
    writer.write([b"to the new reader"])
    assert [bytes(one) for one in reader.read()] == [b"to the new reader"]


def test_a_reader_that_begins_passes_over_what_was_there_and_lets_the_writer_go_on() -> None:
    ring = new_ring()
    writer, _, _ = ends(ring)
    while writer.ready:
        writer.write([bytes(60)])
    _, reader, bells = ends(ring)
    reader.skip()
    assert bells.writer == 1
    assert writer.ready


@settings(max_examples=200, deadline=None)
@given(st.integers(8, 40), st.lists(st.tuples(
    st.sampled_from(["write", "write", "flush", "read", "new writer", "new reader"]), st.integers(1, 700)),
    max_size=60))
def test_whatever_is_lost_messages_are_whole_and_in_order(blocks: int, actions: list[tuple[str, int]]) -> None:
    ring = new_ring(blocks * 16)
    writer, reader, _ = ends(ring)
    sent: list[bytes] = []
    got: list[bytes] = []
    lost = 0
    for action, length in actions:
        match action:
            case "write" if writer.ready:
                sent.append(len(sent).to_bytes(4, "big") * length)
                writer.write([sent[-1]])
            case "flush":
                writer.flush()
            case "read":
                got += map(bytes, reader.read())
            case "new writer":
                lost += not writer.ready
                writer, _, _ = ends(ring)
            case "new reader":
                lost += len(sent)
                _, reader, _ = ends(ring)
                reader.skip()
    for _ in range(1000):
        writer.flush()
        got += map(bytes, reader.read())
    places = [sent.index(one) for one in got]
    assert places == sorted(set(places))
    assert lost or got == sent


WRITER = """
import itertools, random, select, sys, zlib
from duologue.engine.connectors import ShmEdge
from duologue.engine.connectors.ring import RingWriter
from duologue.engine.connectors.shm import Bell
*fds, size, life = map(int, sys.argv[1:])
edge = ShmEdge("a", "b", *fds, size)
space = Bell(edge.to_source)
writer = RingWriter(edge.rings()[0], Bell(edge.to_target).ring)
noise = random.Random(life).randbytes(1 << 18)
for number in itertools.count():
    while not writer.ready:
        writer.flush()
        select.select([space.fd], [], [])
        space.clear()
    body = life.to_bytes(4, "big") + number.to_bytes(4, "big") + noise[:number * 7919 % len(noise)]
    writer.write([zlib.crc32(body).to_bytes(4, "big"), body])
    writer.flush()
"""


@pytest.mark.component
def test_a_writer_killed_at_any_moment_leaves_no_torn_message() -> None:
    edge = ShmEdge.create(EdgeConfig(source="a", target="b", connector="shm", ring_bytes=1 << 17))
    try:
        news = Bell(edge.to_target)
        reader = RingReader(edge.rings()[0], Bell(edge.to_source).ring)
        choose = random.Random(1)
        for life in range(4):
            process = subprocess.Popen(
                [sys.executable, "-c", WRITER, *map(str, (*edge.fds, edge.ring_bytes, life))], pass_fds=edge.fds)
            try:
                seen = itertools.count()
                enough = choose.randrange(50, 300)
                for message in read_while(reader, news, process):
                    body = message[4:]
                    assert zlib.crc32(body) == int.from_bytes(message[:4], "big")
                    assert (int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")) == (life, next(seen))
                    enough -= 1
                    if enough == 0:
                        os.kill(process.pid, signal.SIGKILL)
            finally:
                process.kill()
                process.wait()
    finally:
        edge.close()


def read_while(reader: RingReader, news: Bell, process: subprocess.Popen[bytes]) -> Iterator[memoryview]:
    """What the process writes until it has died, and what it left whole."""
    while True:
        gone = process.poll() is not None
        select.select([news.fd], [], [], 0.05)
        news.clear()
        yield from reader.read()
        if gone:
            return
