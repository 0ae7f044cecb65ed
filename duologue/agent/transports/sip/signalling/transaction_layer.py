"""Matches messages to transactions (RFC 3261 section 17.1.3 and 17.2.3) and holds a bounded number of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sipmessage import Request, Response

from duologue.agent.transports.sip.signalling.transactions import (
    InviteClient,
    InviteServer,
    NonInviteClient,
    NonInviteServer,
    Pass,
    State,
    TimedOut,
    Transaction,
    Transmit,
)
from duologue.agent.transports.sip.signalling.wire import (
    MAGIC_COOKIE,
    Hop,
    cseq_of,
    new_token,
    reply,
    reply_hop,
    tag_of,
    top_via,
)


class Timer(Protocol):
    """A pending call of ``Clock.call_at``."""

    def cancel(self) -> None:
        """Do not call; idempotent."""


class Clock(Protocol):
    """What an asyncio event loop offers of time; tests have one that they turn by hand."""

    def time(self) -> float:
        """Seconds, never going back."""

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer:
        """Call back at ``when``."""


class Full(RuntimeError):  # noqa: N818 - the condition
    """As many transactions are under way as there may be."""


Send = Callable[[Request | Response, Hop], None]
OnResponse = Callable[[Response], None]


class ClientTransaction:
    """One request of ours. Its user gets every response; silence comes as 408, an unreachable hop as 503 (8.1.3.1)."""

    def __init__(self, layer: TransactionLayer, machine: InviteClient | NonInviteClient, hop: Hop,
                 on_response: OnResponse) -> None:
        self._layer = layer
        self.machine = machine
        self.hop = hop
        self.on_response = on_response

    @property
    def request(self) -> Request:
        """What was sent."""
        return self.machine.request

    def limit_to(self, seconds: float) -> None:
        """End it in so many seconds if there is no final response until then, as if it had timed out."""
        self._layer.limit(self, seconds)


class ServerTransaction:
    """One request of the other end."""

    def __init__(self, layer: TransactionLayer, machine: InviteServer | NonInviteServer, hop: Hop) -> None:
        self._layer = layer
        self.machine = machine
        self.hop = hop
        self.to_tag = new_token()
        """Our tag in its responses, and in that to its CANCEL (section 9.2)."""
        self.on_cancel: Callable[[], None] = _nothing
        """Called when the other end cancels it."""

    @property
    def request(self) -> Request:
        """What came."""
        return self.machine.request

    @property
    def answered(self) -> bool:
        """Whether a final response was sent."""
        return self.machine.state not in (State.TRYING, State.PROCEEDING)

    def respond(self, response: Response) -> None:
        """Send a response; a second final one is not sent (except a repeated 2xx to INVITE)."""
        self._layer.respond(self, response)


Key = tuple[str, ...]

_OPEN = (State.CALLING, State.TRYING, State.PROCEEDING)
"""The states of a client without a final response."""


class TransactionLayer:
    """Between the transports and the user agent.

    ``send`` transmits; requests that belong to no transaction are handed to ``on_request`` with their new transaction,
    or with None for an ACK (of a 2xx, which is none's). Above ``limit`` transactions, requests are refused with 503.
    """

    def __init__(self, clock: Clock, send: Send, on_request: Callable[[Request, ServerTransaction | None, Hop], None],
                 limit: int, retry_after_s: int) -> None:
        self._clock = clock
        self._send = send
        self._on_request = on_request
        self._limit = limit
        self._retry_after_s = retry_after_s
        self._clients: dict[Key, ClientTransaction] = {}
        self._servers: dict[Key, ServerTransaction] = {}
        self._timers: dict[Transaction, Timer] = {}
        self.refused = 0
        """Requests refused because there were too many transactions."""

    def __len__(self) -> int:
        return len(self._clients) + len(self._servers)

    def request(self, request: Request, hop: Hop, on_response: OnResponse) -> ClientTransaction:
        """Send a request, which must have its Via. Raises ``Full``."""
        if len(self) >= self._limit:
            raise Full("too many SIP transactions are under way")
        make = InviteClient if request.method == "INVITE" else NonInviteClient
        client = ClientTransaction(self, make(request, hop.reliable), hop, on_response)
        key = _client_key(request)
        self._clients[key] = client
        self._run_client(key, client, client.machine.start(self._clock.time()))
        return client

    def receive(self, message: Request | Response, source: Hop) -> None:
        """Take a message that ``read_message`` read."""
        now = self._clock.time()
        if isinstance(message, Response):
            key = _client_key(message)
            client = self._clients.get(key)
            if client is not None:
                self._run_client(key, client, client.machine.receive(message, now))
            return
        key = _server_key(message)
        server = self._servers.get(key)
        if server is not None and (message.method != "ACK" or server.machine.state is not State.ACCEPTED):
            self._run_server(key, server, server.machine.receive(message, now))
        elif message.method == "ACK":
            self._on_request(message, None, source)
        elif len(self) >= self._limit:
            self.refused += 1
            self._send(reply(message, 503, headers={"Retry-After": str(self._retry_after_s)}),
                       reply_hop(message, source))
        else:
            make = InviteServer if message.method == "INVITE" else NonInviteServer
            server = ServerTransaction(self, make(message, source.reliable), reply_hop(message, source))
            self._servers[key] = server
            self._on_request(message, server, source)

    def respond(self, server: ServerTransaction, response: Response) -> None:
        """Send a response by its transaction."""
        effects = server.machine.respond(response, self._clock.time())
        self._run_server(_server_key(server.request), server, effects)

    def invite_of(self, cancel: Request) -> ServerTransaction | None:
        """The INVITE that a CANCEL means (section 9.2)."""
        return self._servers.get(_server_key(cancel, "INVITE"))

    def unreachable(self, hop: Hop) -> None:
        """A connection could not be made, or was lost: what waits for a response by it fails."""
        for key, client in list(self._clients.items()):
            if client.hop == hop and client.machine.state in _OPEN:
                self._drop(self._clients, key, client.machine)
                client.on_response(reply(client.request, 503, "Unreachable"))

    def limit(self, client: ClientTransaction, seconds: float) -> None:
        """See ``ClientTransaction.limit_to``."""
        key = _client_key(client.request)

        def give_up() -> None:
            if self._clients.get(key) is client and client.machine.state in _OPEN:
                self._drop(self._clients, key, client.machine)
                client.on_response(reply(client.request, 408, "No Response"))

        self._clock.call_at(self._clock.time() + seconds, give_up)

    @property
    def waiting(self) -> bool:
        """Whether a request of ours waits for its final response."""
        return any(client.machine.state in _OPEN for client in self._clients.values())

    def close(self) -> None:
        """Stop all timers and forget everything."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._clients.clear()
        self._servers.clear()

    def _run_client(self, key: Key, client: ClientTransaction, effects: list[Transmit | Pass | TimedOut]) -> None:
        self._arm(client.machine, lambda: self._run_client(key, client, client.machine.expire(self._clock.time())))
        if client.machine.state is State.TERMINATED:
            self._drop(self._clients, key, client.machine)
        for effect in effects:
            if isinstance(effect, Transmit):
                self._send(effect.message, client.hop)
            elif isinstance(effect, TimedOut):
                client.on_response(reply(client.request, 408, "No Response"))
            elif isinstance(effect.message, Response):
                client.on_response(effect.message)

    def _run_server(self, key: Key, server: ServerTransaction, effects: list[Transmit | Pass | TimedOut]) -> None:
        self._arm(server.machine, lambda: self._run_server(key, server, server.machine.expire(self._clock.time())))
        if server.machine.state is State.TERMINATED:
            self._drop(self._servers, key, server.machine)
        for effect in effects:
            if isinstance(effect, Transmit):
                self._send(effect.message, server.hop)

    def _arm(self, machine: Transaction, fire: Callable[[], None]) -> None:
        timer = self._timers.pop(machine, None)
        if timer is not None:
            timer.cancel()
        if machine.deadline is not None:
            self._timers[machine] = self._clock.call_at(machine.deadline, fire)

    def _drop(self, table: dict[Key, ClientTransaction] | dict[Key, ServerTransaction], key: Key,
              machine: Transaction) -> None:
        table.pop(key, None)
        timer = self._timers.pop(machine, None)
        if timer is not None:
            timer.cancel()


def _client_key(message: Request | Response) -> Key:
    """Section 17.1.3: the branch is ours and unique; a CANCEL has its INVITE's."""
    return top_via(message).parameters.get("branch") or "", cseq_of(message).method


def _server_key(request: Request, method: str = "") -> Key:
    """What all copies of a request have in common, and an INVITE with its ACK."""
    method = method or ("INVITE" if request.method == "ACK" else request.method)
    via = top_via(request)
    sent_by = f"{via.host.lower()}:{via.port}"
    branch = via.parameters.get("branch") or ""
    if branch.startswith(MAGIC_COOKIE):
        return branch, sent_by, method
    # RFC 2543: there is no unique branch; the To tag is left out, for an ACK has one and its INVITE none
    return (str(request.uri), request.call_id, str(cseq_of(request).sequence), tag_of(request, "From"), sent_by, branch,
            method)


def _nothing() -> None:
    pass
