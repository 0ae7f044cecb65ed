"""A network that can be lost: relays of UDP and TCP on loopback that stop forwarding, and go on when they are told to.

What is sent into a lost network is gone, unlike what is sent to a stopped process, which finds it all when it goes on.
A TCP connection is held instead: TCP sends again, so all of it comes in the end.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

Address = tuple[str, int]


class Line:
    """Whether anything passes."""

    def __init__(self) -> None:
        self._whole = asyncio.Event()
        self._whole.set()

    @property
    def whole(self) -> bool:
        """Whether it forwards."""
        return self._whole.is_set()

    def lose(self) -> None:
        """Nothing passes from now on, in either direction."""
        self._whole.clear()

    def find(self) -> None:
        """It is back."""
        self._whole.set()

    async def wait(self) -> None:
        """Wait until it is back."""
        await self._whole.wait()


class _Datagrams:
    """One socket for callers, and one towards the server for each of them, as a NAT has."""

    def __init__(self, line: Line, to: Address, at: Address) -> None:
        self._line = line
        self._to = to
        self._upstreams: dict[Address, socket.socket] = {}
        self._own = self._open(at, self._up)

    @property
    def address(self) -> Address:
        """Where callers send to."""
        host, port = self._own.getsockname()
        return host, port

    def _open(self, at: Address, take: Callable[[bytes, Address], None]) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setblocking(False)
        made.bind(at)

        def read() -> None:
            with suppress(OSError):  # what ICMP tells of an earlier datagram
                take(*made.recvfrom(65_536))

        asyncio.get_running_loop().add_reader(made, read)
        return made

    def _up(self, data: bytes, caller: Address) -> None:
        if caller not in self._upstreams:
            self._upstreams[caller] = self._open(("127.0.0.1", 0), lambda back, _: self._pass(self._own, back, caller))
        self._pass(self._upstreams[caller], data, self._to)

    def _pass(self, by: socket.socket, data: bytes, to: Address) -> None:
        if self._line.whole:
            with suppress(OSError):
                by.sendto(data, to)

    def close(self) -> None:
        """Give the sockets back."""
        for made in (self._own, *self._upstreams.values()):
            asyncio.get_running_loop().remove_reader(made)
            made.close()


@contextmanager
def udp_relay(line: Line, to: Address, at: Address = ("127.0.0.1", 0)) -> Iterator[Address]:
    """Relay datagrams to ``to``; gives the address to send to."""
    relay = _Datagrams(line, to, at)
    try:
        yield relay.address
    finally:
        relay.close()


@asynccontextmanager
async def tcp_relay(line: Line, to: Callable[[], Address]) -> AsyncIterator[Address]:
    """Relay each connection to where ``to`` says; gives the address to connect to."""
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65_536):
                await line.wait()
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(*to())
        except OSError:
            writer.close()
            return
        for work in (pump(reader, back), pump(there, writer)):
            task = asyncio.ensure_future(work)
            pumps.add(task)
            task.add_done_callback(pumps.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
