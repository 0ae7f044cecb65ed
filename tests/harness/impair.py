"""A bad network: a UDP relay between caller and server that loses, delays and reorders by a seed."""

from __future__ import annotations

import asyncio
import random
import re
import socket
import threading
from dataclasses import dataclass
from typing import Self

_CANDIDATE = re.compile(
    r"a=candidate:\S+ 1 udp \d+ (?P<ip>\d+\.\d+\.\d+\.\d+) (?P<port>\d+) typ host[^\r\n]*", re.IGNORECASE)
_ADDRESS_LINE = re.compile(r"a=(?:candidate:|end-of-candidates)[^\r\n]*(?:\r\n|\n)?", re.IGNORECASE)

Address = tuple[str, int]


@dataclass(slots=True)
class Traffic:
    """Datagrams of one direction."""

    passed: int = 0
    lost: int = 0


class Impairment:
    """Decides the fate of each datagram of one direction by its number and a seed alone.

    Nothing is lost or delayed before the first RTP packet: a call is set up, then the network turns bad, for
    media, control channel and consent checks alike.
    """

    def __init__(self, loss: float, jitter_ms: float, seed: int) -> None:
        self.traffic = Traffic()
        self._loss = loss
        self._jitter_s = jitter_ms / 1000
        self._random = random.Random(seed)
        self._started = False

    def delay(self, datagram: bytes) -> float | None:
        """Seconds to hold ``datagram`` for, uniform in [0, jitter]; None if it is lost."""
        # RFC 7983 section 7: a first byte of 128 to 191 is RTP or RTCP; RTCP has a second byte of 192 to 223.
        media = len(datagram) > 1 and 128 <= datagram[0] <= 191 and not 192 <= datagram[1] <= 223
        self._started = self._started or media
        if not self._started:
            self.traffic.passed += 1
            return 0.0
        if self._random.random() < self._loss:
            self.traffic.lost += 1
            return None
        self.traffic.passed += 1
        return self._random.random() * self._jitter_s


class _Side(asyncio.DatagramProtocol):
    """The relay's socket towards one peer; what comes in here goes out at the other side."""

    def __init__(self, impairment: Impairment) -> None:
        self.impairment = impairment
        self.peer: Address | None = None
        self.other: _Side | None = None
        self.transport: asyncio.DatagramTransport | None = None

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.peer = addr  # a browser may use another socket than the one it named first
        delay = self.impairment.delay(data)
        if delay is None or self.other is None:
            return
        if delay:
            asyncio.get_running_loop().call_later(delay, self.other.emit, data)
        else:
            self.other.emit(data)

    def emit(self, data: bytes) -> None:
        if self.transport is not None and self.peer is not None and not self.transport.is_closing():
            self.transport.sendto(data, self.peer)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


class ImpairedNetwork:
    """The network of one call: rewrite its offer and its answer, and its media has to come this way.

    ``loss`` is the share of datagrams that never arrive, ``jitter_ms`` the longest delay; delays are uniform,
    so datagrams overtake each other. Both directions suffer, each from its own seed.
    """

    def __init__(self, loss: float, jitter_ms: float, seed: int = 1) -> None:
        self.up = Impairment(loss, jitter_ms, seed)
        self.down = Impairment(loss, jitter_ms, seed + 1)
        self._caller = _Side(self.up)
        self._server = _Side(self.down)
        self._caller.other, self._server.other = self._server, self._caller
        # Its own thread: what the test computes must not become jitter.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bad network", daemon=True)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for side in (self._caller, self._server):
            self._loop.call_soon_threadsafe(side.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()

    def offer(self, sdp: str) -> str:
        """The caller's offer as the server shall see it: without a way back, so that the server must wait for
        the caller's checks (RFC 8445 section 7.3.1.3), which come through here."""
        return _ADDRESS_LINE.sub("", sdp)

    async def answer(self, sdp: str) -> str:
        """The server's answer as the caller shall see it: the relay is its only candidate.

        Raises ``ValueError`` without an IPv4 candidate.
        """
        found = _CANDIDATE.search(sdp)
        if found is None:
            raise ValueError("the answer has no IPv4 UDP host candidate")
        own = found["ip"]
        self._server.peer = own, int(found["port"])
        opened = asyncio.run_coroutine_threadsafe(self._open_both(own), self._loop)
        port = await asyncio.wrap_future(opened)
        line = f"a=candidate:1 1 udp 2130706431 {own} {port} typ host\r\n"
        first = _ADDRESS_LINE.search(sdp)
        assert first is not None
        return sdp[: first.start()] + line + _ADDRESS_LINE.sub("", sdp[first.start() :])

    async def _open_both(self, own: str) -> int:
        await self._open(self._server, own)
        return await self._open(self._caller, own)

    async def _open(self, side: _Side, own: str) -> int:
        # Binding fails for an address that is not this machine's, so nothing is ever sent from elsewhere.
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((own, 0))
        sock.setblocking(False)
        side.transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: side, sock=sock)
        port: int = sock.getsockname()[1]
        return port
