"""Endpoints on a virtual clock and a network that does as it is told."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from sipmessage import URI, Request, Response

from duologue.agent.transports.sip.calls import Ended
from duologue.agent.transports.sip.config import SipConfig, TransportName
from duologue.agent.transports.sip.signalling.digest import DigestClient
from duologue.agent.transports.sip.signalling.endpoint import Endpoint, Local
from duologue.agent.transports.sip.signalling.leg import Leg
from duologue.agent.transports.sip.signalling.leg_in import IncomingLeg
from duologue.agent.transports.sip.signalling.leg_out import OutgoingLeg
from duologue.agent.transports.sip.signalling.wire import Hop, Malformed, read_message


class VirtualTimer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualClock:
    """Time that passes when told."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._heap: list[tuple[float, int, VirtualTimer]] = []
        self._count = itertools.count()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object], /) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heapq.heappush(self._heap, (when, next(self._count), timer))
        return timer

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        until = self.now + seconds
        while self._heap and self._heap[0][0] <= until:
            when, _, timer = heapq.heappop(self._heap)
            self.now = max(self.now, when)
            if timer.callback is not None:
                callback, timer.callback = timer.callback, None
                callback()
        self.now = until

    @property
    def pending(self) -> int:
        """Timers that are still to fire."""
        return sum(timer.callback is not None for _, _, timer in self._heap)


Fate = Callable[[bytes], list[float]]
"""Delays, in seconds, at which copies of a message arrive; none if it is lost."""


def prompt(_data: bytes) -> list[float]:
    return [0.01]


class Network:
    """Carries messages between endpoints and phones by their port."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.fate: Fate = prompt
        self.damage: Callable[[bytes], bytes] = lambda data: data
        self.receivers: dict[int, Callable[[bytes, Hop], None]] = {}
        self.seen: list[tuple[int, int, Request | Response]] = []
        """(from, to, message) of everything that was sent, lost or not."""

    def carry(self, data: bytes, sender: Hop, to: int) -> None:
        with suppress(Malformed):  # keep-alives, and answers to what was damaged on the way
            self.seen.append((sender.port, to, read_message(data)))
        for delay in self.fate(data):
            arriving = self.damage(data)
            self.clock.call_at(self.clock.now + delay, partial(self._arrive, arriving, sender, to))

    def _arrive(self, data: bytes, sender: Hop, to: int) -> None:
        receiver = self.receivers.get(to)
        if receiver is not None:
            receiver(data, sender)

    def sent(self, port: int) -> list[str]:
        """What a port sent: methods and statuses (with the method they answer)."""
        return [name(message) for sender, _, message in self.seen if sender == port]


def name(message: Request | Response) -> str:
    if isinstance(message, Request):
        return message.method
    return f"{message.code} {message.cseq.method}"


class Wire:
    """An endpoint's ``Network``."""

    def __init__(self, network: Network, port: int, transport: TransportName) -> None:
        self._network = network
        self._own = Hop(transport, "127.0.0.1", port)

    def send(self, data: bytes, hop: Hop) -> None:
        self._network.carry(data, self._own, hop.port)

    def is_connected(self, hop: Hop) -> bool:
        return hop.reliable


@dataclass
class Owner:
    """A leg's listener that writes down what it is told, and answers offers if it has an answer."""

    leg: Leg | None = None
    heard: list[tuple[str, object]] = field(default_factory=list)
    answer: str | None = "later answer"

    def on_offer(self, sdp: str) -> None:
        self.heard.append(("offer", sdp))
        if self.answer is not None and self.leg is not None:
            self.leg.accept_offer(self.answer)

    def on_offer_withdrawn(self) -> None:
        self.heard.append(("withdrawn", ""))

    def on_answered(self, sdp: str) -> None:
        self.heard.append(("answered", sdp))

    def on_digits(self, digits: str) -> None:
        self.heard.append(("digits", digits))

    def on_ended(self, ended: Ended) -> None:
        self.heard.append(("ended", ended.reason))

    @property
    def ends(self) -> list[object]:
        return [what for kind, what in self.heard if kind == "ended"]


class Agent:
    """An endpoint at a port, its calls and their owners."""

    def __init__(self, network: Network, port: int, config: SipConfig | None = None,
                 transport: TransportName = "udp") -> None:
        self.port = port
        self.network = network
        self.endpoint = Endpoint(config or SipConfig(), network.clock, Wire(network, port, transport),
                                 [Local(transport, "127.0.0.1", port)], self)
        network.receivers[port] = self.endpoint.receive
        self.transport = transport
        self.incoming: list[IncomingLeg] = []
        self.owners: dict[Leg, Owner] = {}
        self.answered: list[Leg] = []
        self.on_call: Callable[[IncomingLeg], None] = lambda leg: leg.answer("answer")

    def on_invite(self, leg: IncomingLeg) -> None:
        self.own(leg)
        self.incoming.append(leg)
        self.on_call(leg)

    def on_leg_answered(self, leg: Leg) -> None:
        self.answered.append(leg)

    def on_leg_ended(self, leg: Leg) -> None:
        pass

    def own(self, leg: Leg) -> Owner:
        owner = self.owners[leg] = Owner(leg)
        leg.listener = owner
        return owner

    def dial(self, port: int, digest: DigestClient | None = None) -> OutgoingLeg:
        target = URI(scheme="sip", user="line", host="127.0.0.1", port=port)
        leg = OutgoingLeg(self.endpoint, target, URI(scheme="sip", user="us", host="127.0.0.1"),
                          Hop(self.transport, "127.0.0.1", port), "offer", digest)
        self.own(leg)
        self.endpoint.legs.add(leg)
        leg.start()
        return leg

    @property
    def idle(self) -> bool:
        """Whether nothing is left of any call."""
        endpoint = self.endpoint
        return not endpoint.legs and not len(endpoint.layer) and not endpoint._dialogs and not endpoint._ids


class Phone:
    """Sends and receives single messages, written out."""

    def __init__(self, network: Network, port: int, to: int) -> None:
        self.network = network
        self.port = port
        self.to = to
        self.got: list[Request | Response] = []
        self.on_message: Callable[[Request | Response], None] = lambda message: None
        network.receivers[port] = self._receive
        self.own = Hop("udp", "127.0.0.1", port)

    def _receive(self, data: bytes, _source: Hop) -> None:
        if not data.strip():
            return
        message = read_message(data)
        self.got.append(message)
        self.on_message(message)

    def send(self, text: str) -> None:
        """Send a message; lines end as the source's do."""
        head, blank, body = text.partition("\n\n")
        assert blank
        data = head.strip().replace("\n", "\r\n").encode() + b"\r\n\r\n" + body.encode()
        for delay in self.network.fate(data):
            self.network.clock.call_at(self.network.clock.now + delay,
                                       lambda: self.network._arrive(data, self.own, self.to))

    def request(self, method: str, *, cseq: int = 1, branch: str = "", to_tag: str = "", call_id: str = "c1",
                extra: str = "", body: str = "", kind: str = "application/sdp", uri: str = "",
                from_tag: str = "f1") -> None:
        """Send a request with an ordinary header."""
        lines = [f"{method} {uri or f'sip:line@127.0.0.1:{self.to}'} SIP/2.0",
                 f"Via: SIP/2.0/UDP 127.0.0.1:{self.port};branch=z9hG4bK{branch or f'{call_id}{method}{cseq}'};rport",
                 f"From: <sip:phone@127.0.0.1>;tag={from_tag}",
                 f"To: <sip:line@127.0.0.1>{f';tag={to_tag}' if to_tag else ''}",
                 f"Call-ID: {call_id}", f"CSeq: {cseq} {method}", "Max-Forwards: 70",
                 f"Contact: <sip:phone@127.0.0.1:{self.port}>"]
        if extra:
            lines.append(extra)
        if body:
            lines.append(f"Content-Type: {kind}")
        lines.append(f"Content-Length: {len(body)}")
        self.send("\n".join(lines) + "\n\n" + body)

    def respond(self, request: Request, code: int, *, tag: str = "t1", extra: str = "", body: str = "",
                kind: str = "application/sdp", contact: bool = True) -> None:
        """Answer a request that came."""
        lines = [f"SIP/2.0 {code} Whatever"]
        lines += [f"Via: {via}" for via in request.headers.getlist("Via")]
        to = request.headers["To"]
        lines += [f"From: {request.headers['From']}", f"To: {to}" + ("" if "tag=" in to else f";tag={tag}"),
                  f"Call-ID: {request.call_id}", f"CSeq: {request.cseq}"]
        if contact:
            lines.append(f"Contact: <sip:{tag}@127.0.0.1:{self.port}>")
        if extra:
            lines.append(extra)
        if body:
            lines.append(f"Content-Type: {kind}")
        lines.append(f"Content-Length: {len(body)}")
        self.send("\n".join(lines) + "\n\n" + body)

    @property
    def names(self) -> list[str]:
        return [name(message) for message in self.got]

    def last(self) -> Request | Response:
        return self.got[-1]
