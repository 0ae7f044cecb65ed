"""UDP, TCP and TLS under the endpoint: the thin part that does input and output."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address
from typing import Any

from duologue.agent.logs import EventLog
from duologue.agent.transports.sip.config import SipConfig
from duologue.agent.transports.sip.signalling.endpoint import Local
from duologue.agent.transports.sip.signalling.framing import PING, PONG, StreamFramer, Unframed
from duologue.agent.transports.sip.signalling.wire import Hop
from duologue.metrics import DROPS

CONNECT_TIMEOUT_S = 10.0
HANDSHAKE_TIMEOUT_S = 10.0
MAX_PENDING = 64
"""Messages that wait for one connection to come up."""
MAX_UNSENT_BYTES = 1 << 20
"""A peer that reads so little that more than this waits for it is cut off."""
NAME_LIFETIME_S = 60.0
MAX_NAMES = 256

_log = EventLog(__name__)


class Sockets:
    """All listeners and connections of one endpoint.

    ``on_message`` gets each message with the hop that answers go to; ``on_unreachable`` each hop that failed;
    ``in_use`` says of a hop whether a call needs its connection although nothing comes by it.
    """

    def __init__(self, config: SipConfig, on_message: Callable[[bytes, Hop], None],
                 on_unreachable: Callable[[Hop], None], in_use: Callable[[Hop], bool]) -> None:
        self.config = config
        self.on_message = on_message
        self.in_use = in_use
        self.connections: dict[Hop, Connection] = {}
        """A connection that we opened to a name is here by its address too."""
        self._on_unreachable = on_unreachable
        self._datagrams: dict[int, asyncio.DatagramTransport] = {}
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._names: dict[str, tuple[str, float]] = {}
        self._closed = False
        self._server_tls, self._client_tls = _tls(config)

    async def start(self) -> list[Local]:
        """Bind everything. Raises ``OSError`` that names the address; then nothing stays bound."""
        loop = asyncio.get_running_loop()
        found: list[Local] = []
        for index, listen in enumerate(self.config.listen):
            where = f"{listen.transport} {listen.host}:{listen.bind_port}"
            try:
                if listen.transport == "udp":
                    transport, _ = await loop.create_datagram_endpoint(
                        partial(_Datagrams, self, index),
                        local_addr=(listen.host, listen.bind_port))
                    self._datagrams[index] = transport
                    port = transport.get_extra_info("sockname")[1]
                else:
                    tls = self._server_tls if listen.transport == "tls" else None
                    server = await loop.create_server(
                        partial(Connection, self, index),
                        listen.host, listen.bind_port, ssl=tls,
                        ssl_handshake_timeout=HANDSHAKE_TIMEOUT_S if tls is not None else None)
                    self._servers.append(server)
                    port = server.sockets[0].getsockname()[1]
            except OSError as error:
                await self.close()
                raise OSError(error.errno, f"SIP cannot listen at {where}: {error.strerror or error}") from error
            found.append(Local(listen.transport, listen.advertised, port))
        return found

    def send(self, data: bytes, hop: Hop) -> None:
        """Send one message; opens a connection if there is none."""
        if self._closed:
            return
        if hop.reliable:
            connection = self.connections.get(hop)
            if connection is None:
                connection = self._connect(hop)
            connection.send(data)
        else:
            address = self._known(hop.host)
            if address:
                self._send_datagram(data, hop, address)
            else:
                self._spawn(self._resolve_and_send(data, hop))

    def is_connected(self, hop: Hop) -> bool:
        """Whether a connection to this hop is open."""
        return hop in self.connections

    def lost(self, connection: Connection) -> None:
        """A connection is gone, or never came."""
        hops = [hop for hop, each in self.connections.items() if each is connection]
        for hop in hops:
            del self.connections[hop]
        for hop in hops:
            self._on_unreachable(hop)

    async def close(self) -> None:
        """Close everything; idempotent."""
        self._closed = True
        for server in self._servers:
            server.close()
        for transport in self._datagrams.values():
            transport.close()
        for connection in set(self.connections.values()):
            connection.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()

    def _connect(self, hop: Hop) -> Connection:
        connection = Connection(self, hop.local, hop)
        self.connections[hop] = connection
        self._spawn(self._open(connection, hop))
        return connection

    async def _open(self, connection: Connection, hop: Hop) -> None:
        loop = asyncio.get_running_loop()
        tls = self._client_tls if hop.transport == "tls" else None
        try:
            if len(set(self.connections.values())) > self.config.limits.connections:
                raise OSError("too many connections are open")
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.create_connection(lambda: connection, hop.host, hop.port, ssl=tls,
                                             server_hostname=hop.host if tls is not None else None)
        except (OSError, TimeoutError, ssl.CertificateError) as error:
            _log.warning("sip_connection_failed", transport=hop.transport, host=hop.host, port=hop.port,
                         why=str(error))
            self.lost(connection)

    async def _resolve_and_send(self, data: bytes, hop: Hop) -> None:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(hop.host, hop.port)
        except OSError as error:
            _log.warning("sip_name_unknown", host=hop.host, why=str(error))
            self._on_unreachable(hop)
            return
        address = str(found[0][4][0])
        if len(self._names) >= MAX_NAMES:
            self._names.clear()
        self._names[hop.host] = address, loop.time() + NAME_LIFETIME_S
        self._send_datagram(data, hop, address)

    def _known(self, host: str) -> str:
        """The address of a host, if no look-up is needed."""
        try:
            return str(ip_address(host))
        except ValueError:
            address, until = self._names.get(host, ("", 0.0))
            return address if until > asyncio.get_running_loop().time() else ""

    def _send_datagram(self, data: bytes, hop: Hop, address: str) -> None:
        transport = self._datagrams.get(hop.local)
        if transport is not None and not transport.is_closing():
            transport.sendto(data, (address, hop.port))

    def _spawn(self, what: Any) -> None:
        task = asyncio.ensure_future(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, sockets: Sockets, local: int) -> None:
        self._sockets = sockets
        self._local = local

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if len(data) > self._sockets.config.limits.message_bytes:
            DROPS.labels(what="sip_message", reason="too_long").inc()
            return
        self._sockets.on_message(data, Hop("udp", addr[0], addr[1], self._local))


class Connection(asyncio.Protocol):
    """One TCP or TLS connection."""

    def __init__(self, sockets: Sockets, local: int, opened_to: Hop | None = None) -> None:
        self._sockets = sockets
        self._local = local
        self._opened_to = opened_to
        self._hop: Hop | None = None
        self._transport: asyncio.Transport | None = None
        self._framer = StreamFramer(sockets.config.limits.message_bytes)
        self._pending: list[bytes] = []
        self._heard_at = 0.0
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take its place among the connections, unless there are too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = transport.get_extra_info("peername")[:2]
        kind = self._sockets.config.listen[self._local].transport
        self._hop = Hop(kind, host, port, self._local)
        connections = self._sockets.connections
        if self._opened_to is None and len(set(connections.values())) >= self._sockets.config.limits.connections:
            DROPS.labels(what="sip_connection", reason="full").inc()
            transport.abort()
            return
        connections[self._hop] = self
        for data in self._pending:
            transport.write(data)
        self._pending.clear()
        self._heard_at = asyncio.get_running_loop().time()
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Cut messages out of the stream."""
        self._heard_at = asyncio.get_running_loop().time()
        assert self._hop is not None
        try:
            for message in self._framer.feed(data):
                if message == PING:
                    self.send(PONG)
                else:
                    self._sockets.on_message(message, self._hop)
        except Unframed:
            DROPS.labels(what="sip_message", reason="unframed").inc()
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the connections."""
        if self._idle is not None:
            self._idle.cancel()
        self._sockets.lost(self)

    def send(self, data: bytes) -> None:
        """Write, or keep until the connection is up."""
        if self._transport is None:
            if len(self._pending) < MAX_PENDING:
                self._pending.append(data)
            else:
                DROPS.labels(what="sip_message", reason="full").inc()
        elif not self._transport.is_closing():
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
                self._transport.abort()

    def close(self) -> None:
        """Close it once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        idle_s = self._sockets.config.limits.idle_connection_s
        assert self._hop is not None
        used = any(self._sockets.in_use(hop) for hop in (self._hop, self._opened_to) if hop is not None)
        if used or loop.time() - self._heard_at < idle_s:
            self._idle = loop.call_later(idle_s, self._watch)
        else:
            self.close()


def _tls(config: SipConfig) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """The contexts of listeners and of connections that we open."""
    if config.tls is None:
        return None, None
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(config.tls.certificate, config.tls.key)
    client = ssl.create_default_context(cafile=config.tls.authorities)
    return server, client
