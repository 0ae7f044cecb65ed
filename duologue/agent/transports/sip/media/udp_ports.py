"""A pair of UDP ports for one stream: an even one for RTP, the next for RTCP (RFC 3550 section 11)."""

from __future__ import annotations

import asyncio
import errno
import random
import socket
from collections.abc import Callable

from duologue.agent.transports.sip.media.negotiation import Address
from duologue.metrics import DROPS

_MAX_DATAGRAM = 2048
_MOST_AT_ONCE = 32  # datagrams taken in one go, so that one caller's flood does not starve the others
_EXPEDITED = 0xB8  # DSCP 46, expedited forwarding, for voice (RFC 4594 section 4.1)


class NoPorts(OSError):  # noqa: N818 - what is missing
    """Every pair of the configured range is taken."""


Take = Callable[[bytes, Address], None]
"""Takes one datagram and where it came from."""


class PortPair:
    """Two bound sockets; ``port`` is RTP's."""

    def __init__(self, host: str, ports: tuple[int, int]) -> None:
        """Bind the first free pair of ``ports`` (inclusive), from a random place on. Raises ``NoPorts``."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        low, high = ports
        pairs = range(low + low % 2, high, 2)
        start = random.randrange(len(pairs)) if pairs else 0
        for port in (*pairs[start:], *pairs[:start]):
            self._sockets: list[socket.socket] = []
            try:
                for each in (port, port + 1):
                    made = socket.socket(family, socket.SOCK_DGRAM)
                    self._sockets.append(made)
                    made.setblocking(False)
                    made.bind((host, each))
            except OSError as fault:
                self._close_sockets()
                if fault.errno != errno.EADDRINUSE:
                    raise NoPorts(f"RTP cannot be received at {host}: {fault.strerror or fault}") from fault
                continue
            break
        else:
            raise NoPorts(f"every pair of the RTP ports {low}-{high} at {host} is taken")
        self.port = port
        if family == socket.AF_INET:
            self._sockets[0].setsockopt(socket.IPPROTO_IP, socket.IP_TOS, _EXPEDITED)
        self._loop = asyncio.get_running_loop()

    def open(self, on_media: Take, on_control: Take) -> None:
        """Begin to take datagrams of either socket."""
        for made, take in zip(self._sockets, (on_media, on_control), strict=True):
            self._loop.add_reader(made, self._read, made, take)

    def send(self, data: bytes, to: Address) -> bool:
        """Send from RTP's port; False, and counted, if it cannot go at once."""
        return self._send(0, data, to)

    def send_control(self, data: bytes, to: Address) -> bool:
        """Send from RTCP's port."""
        return self._send(1, data, to)

    def close(self) -> None:
        """Give the ports back; idempotent."""
        for made in self._sockets:
            self._loop.remove_reader(made)
        self._close_sockets()

    def _close_sockets(self) -> None:
        for made in self._sockets:
            made.close()
        self._sockets = []

    def _send(self, which: int, data: bytes, to: Address) -> bool:
        if not self._sockets:
            return False
        try:
            self._sockets[which].sendto(data, to)
        except OSError:  # full, unreachable, or a family that this socket has not
            DROPS.labels(what="datagram", reason="unsendable").inc()
            return False
        return True

    def _read(self, made: socket.socket, take: Take) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                data, source = made.recvfrom(_MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError:  # what ICMP told of an earlier datagram
                continue
            take(data, (source[0], source[1]))
            if not self._sockets:
                return
