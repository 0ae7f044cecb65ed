"""A ring of bytes in shared memory, for one process that writes and one that reads.

A message is written in frames; a frame counts once the writer has moved its index behind it, which is after its
bytes, so that a writer that dies leaves nothing half visible. A message whose writer or reader was replaced in the
middle of it vanishes.

Layout: three u64 words in cache lines of their own (bytes written ever, bytes read ever, whether the writer waits for
space), then the data. Frame: u32 length, u32 whether a message begins here, u64 length of that message, the bytes,
up to the next multiple of 16. New memory is all zeros, and that is an empty ring.
"""

from __future__ import annotations

import struct
import threading
from collections import deque
from collections.abc import Callable, Sequence

from duologue.engine.framing import ALIGN

HEADER_BYTES = 192
_WRITTEN, _READ, _WAITS = 0, 8, 16
_FRAME = struct.Struct("<IIQ")


class Ring:
    """The memory of both ends; ``memory`` is ``HEADER_BYTES`` and a multiple of ``ALIGN`` bytes long."""

    def __init__(self, memory: memoryview) -> None:
        self.words = memory[:HEADER_BYTES].cast("Q")
        self.data = memory[HEADER_BYTES:]
        self.size = len(self.data)
        self._lock = threading.Lock()
        self._lock.acquire()

    def barrier(self) -> None:
        """Order every load and store before it before those after it, which not every processor does by itself.

        A release followed by an acquire is such a barrier: neither may pass the other (x86-64: locked instructions;
        ARM Architecture Reference Manual, B2.3: barrier-ordered-before).
        """
        self._lock.release()
        self._lock.acquire()


class RingWriter:
    """The end that writes. ``bell`` is called when the reader has something to read."""

    def __init__(self, ring: Ring, bell: Callable[[], None]) -> None:
        self._ring = ring
        self._bell = bell
        self._rest: deque[memoryview] = deque()
        self._total = 0
        self._left = 0
        self._rung = True
        # Small enough for the reader to take one frame while the next is written.
        self._most = ring.size // 4 - _FRAME.size

    @property
    def ready(self) -> bool:
        """Whether all that was given to ``write`` is in the ring, as far as there is space for it."""
        self._go_on()
        return not self._left

    def write(self, parts: Sequence[bytes | memoryview]) -> None:
        """Take a message, in parts; only when ``ready``.

        What there is no space for is kept, by reference, and written by later calls of ``ready`` and ``flush``.
        """
        if self._left:
            raise ValueError("the message before is not wholly written")
        self._rest = deque(memoryview(part).cast("B") for part in parts if len(part))
        self._total = self._left = sum(map(len, self._rest))
        self._go_on()

    def flush(self) -> None:
        """Write what is left as far as there is space, and ring for what was written since the last ring."""
        self._go_on()
        if not self._rung:
            self._rung = True
            self._bell()

    def _go_on(self) -> None:
        ring = self._ring
        while self._left:
            length = min(self._left, self._most)
            padded = -(-length // ALIGN) * ALIGN
            if not self._space(_FRAME.size + padded):
                return
            at = ring.words[_WRITTEN]
            _FRAME.pack_into(ring.data, at % ring.size, length, self._left == self._total, self._total)
            self._copy(at + _FRAME.size, length)
            ring.barrier()
            ring.words[_WRITTEN] = at + _FRAME.size + padded
            self._left -= length
            self._rung = False

    def _space(self, needed: int) -> bool:
        ring = self._ring
        if ring.size - (ring.words[_WRITTEN] - ring.words[_READ]) >= needed:
            return True
        # The reader rings when it sees this; had it read before it could, there is space now.
        ring.words[_WAITS] = 1
        ring.barrier()
        return ring.size - (ring.words[_WRITTEN] - ring.words[_READ]) >= needed

    def _copy(self, at: int, length: int) -> None:
        ring = self._ring
        while length:
            place = at % ring.size
            part = self._rest[0]
            count = min(length, len(part), ring.size - place)
            ring.data[place:place + count] = part[:count]
            if count == len(part):
                self._rest.popleft()
            else:
                self._rest[0] = part[count:]
            at += count
            length -= count


class RingReader:
    """The end that reads. ``bell`` is called when a writer that waits has space again."""

    def __init__(self, ring: Ring, bell: Callable[[], None]) -> None:
        self._ring = ring
        self._bell = bell
        self._message = memoryview(b"")
        self._filled = 0

    def skip(self) -> None:
        """Pass over everything that was written."""
        self._passed(self._ring.words[_WRITTEN])

    def read(self) -> list[memoryview]:
        """The messages that are whole now, each in memory of its own."""
        ring = self._ring
        at, end = ring.words[_READ], ring.words[_WRITTEN]
        if at == end:
            return []
        ring.barrier()
        messages = []
        while at < end:
            length, begins, total = _FRAME.unpack_from(ring.data, at % ring.size)
            if begins:
                self._message, self._filled = memoryview(bytearray(total)), 0
            # Without a beginning it is the rest of a message that a reader before this one began.
            if self._message:
                self._copy(at + _FRAME.size, length)
                if self._filled == len(self._message):
                    messages.append(self._message)
                    self._message = memoryview(b"")
            at += _FRAME.size + -(-length // ALIGN) * ALIGN
        self._passed(at)
        return messages

    def _copy(self, at: int, length: int) -> None:
        ring = self._ring
        while length:
            place = at % ring.size
            count = min(length, ring.size - place)
            self._message[self._filled:self._filled + count] = ring.data[place:place + count]
            self._filled += count
            at += count
            length -= count

    def _passed(self, at: int) -> None:
        ring = self._ring
        ring.barrier()
        ring.words[_READ] = at
        ring.barrier()
        if ring.words[_WAITS]:
            ring.words[_WAITS] = 0
            self._bell()
