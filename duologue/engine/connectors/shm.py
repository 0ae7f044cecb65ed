"""Two stages in two processes of one machine, by shared memory: no copy passes the hub, and nothing is polled.

The hub makes the memory (memfd_create(2)) and two doorbells (eventfd(2)) once, and gives the same descriptors to
every process it starts for either end: they have no names, so nothing is left behind whoever is killed. One ring
carries all sessions' parcels, a small one what was filed, the other way. Arrays are copied into the ring and out of
it, and never into a pickle.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from duologue.engine.config import ConfigError, EdgeConfig
from duologue.engine.connectors.base import Filed, Parcel
from duologue.engine.connectors.ring import HEADER_BYTES, Ring, RingReader, RingWriter
from duologue.engine.framing import ALIGN, pack, unpack

RING_BYTES = 1 << 22
"""Twelve messages of 20 tokens with hidden states of a model as wide as MiniCPM-o 4.5's (4096)."""
BACK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class ShmEdge:
    """One edge's memory and doorbells, as descriptors that a worker inherits under the same numbers."""

    source: str
    target: str
    memory: int
    to_target: int
    """Rings at the consumer's: there are parcels, or space for what it has filed."""
    to_source: int
    """Rings at the producer's: something was filed, or there is space for parcels."""
    ring_bytes: int

    @classmethod
    def create(cls, edge: EdgeConfig) -> ShmEdge:
        """Make an edge's memory, all zeros; raises ``ConfigError``."""
        if not hasattr(os, "memfd_create"):
            raise ConfigError(f"edge {edge.source} -> {edge.target}: the connector 'shm' needs Linux; use 'socket'")
        data = (edge.ring_bytes or RING_BYTES) // ALIGN * ALIGN
        fds: list[int] = []
        try:
            fds.append(os.memfd_create(f"duologue-{edge.source}-{edge.target}"))
            # Not only a length: memory that is not there when it is touched would kill the process.
            os.posix_fallocate(fds[0], 0, 2 * HEADER_BYTES + data + BACK_BYTES)
            fds += [os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for _ in range(2)]
        except OSError as error:
            for fd in fds:
                os.close(fd)
            raise ConfigError(f"edge {edge.source} -> {edge.target}: {data} bytes of shared memory cannot be had "
                              f"({error.strerror}); set a smaller ring_bytes") from error
        memory, to_target, to_source = fds
        return cls(edge.source, edge.target, memory, to_target, to_source, data)

    @property
    def fds(self) -> tuple[int, int, int]:
        """All descriptors."""
        return self.memory, self.to_target, self.to_source

    def duplicate(self) -> ShmEdge:
        """The same edge by descriptors of its own."""
        memory, to_target, to_source = map(os.dup, self.fds)
        return replace(self, memory=memory, to_target=to_target, to_source=to_source)

    def close(self) -> None:
        """Close this process's descriptors, once."""
        for fd in self.fds:
            os.close(fd)

    def rings(self) -> tuple[Ring, Ring]:
        """The ring of the parcels and the one of what was filed."""
        cut = HEADER_BYTES + self.ring_bytes
        memory = memoryview(mmap.mmap(self.memory, 2 * HEADER_BYTES + self.ring_bytes + BACK_BYTES))
        return Ring(memory[:cut]), Ring(memory[cut:])


class Bell:
    """An eventfd."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def ring(self) -> None:
        """Make it readable."""
        os.eventfd_write(self.fd, 1)

    def clear(self) -> None:
        """Make it unreadable."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.fd)


class ShmSender:
    """The producer's end."""

    def __init__(self, edge: ShmEdge) -> None:
        there, back = edge.rings()
        bell = Bell(edge.to_target)
        self._own = Bell(edge.to_source)
        self._writer = RingWriter(there, bell.ring)
        self._reader = RingReader(back, bell.ring)
        self._reader.skip()

    def send(self, parcel: Parcel) -> bool:
        """Take ``parcel``; False while an earlier one is not wholly in the ring."""
        if not self._writer.ready:
            return False
        self._writer.write(pack(parcel))
        return True

    def filed(self) -> list[Filed]:
        """What the consumer has said since the last call."""
        return [filed for message in self._reader.read() for filed in unpack(message)]

    def flush(self) -> None:
        """Let the consumer know of what was sent."""
        self._writer.flush()

    def fileno(self) -> int:
        """Readable when something was filed, or there is space again."""
        return self._own.fd

    def clear(self) -> None:
        """Make it unreadable."""
        self._own.clear()


class ShmReceiver:
    """The consumer's end."""

    def __init__(self, edge: ShmEdge) -> None:
        there, back = edge.rings()
        bell = Bell(edge.to_source)
        self._own = Bell(edge.to_target)
        self._reader = RingReader(there, bell.ring)
        self._writer = RingWriter(back, bell.ring)
        self._untold: dict[str, Filed] = {}
        self._reader.skip()

    def receive(self) -> list[Parcel]:
        """What has come since the last call."""
        self.file(())
        return [unpack(message) for message in self._reader.read()]

    def file(self, filed: Iterable[Filed]) -> None:
        """Let the producer know what was filed; what there is no space for now, with the next call."""
        self._untold |= {one.session: one for one in filed}
        if self._untold and self._writer.ready:
            self._writer.write(pack(tuple(self._untold.values())))
            self._untold.clear()
        self._writer.flush()

    def fileno(self) -> int:
        """Readable when there are parcels, or space for what was filed."""
        return self._own.fd

    def clear(self) -> None:
        """Make it unreadable."""
        self._own.clear()
