"""A network for tests, and a receive path behind it: all from a seed, on a clock of its own."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from duologue.agent.media.receive import Received, ReceivePath
from duologue.engine import Pcm

PULL_MS = 20


@dataclass(frozen=True, slots=True)
class Sent:
    """One RTP packet as it leaves the sender at ``at_ms``."""

    sequence: int
    timestamp: int
    payload: bytes
    at_ms: float
    source: int = 0


@dataclass(frozen=True, slots=True)
class Arrival:
    """One RTP packet as it reaches the receiver at ``at_ms``."""

    at_ms: float
    packet: Sent


def impair(packets: Sequence[Sent], *, loss: float = 0.0, burst: float = 1.0, jitter_ms: float = 0.0,
           duplicates: float = 0.0, ordered: bool = False, seed: int = 0) -> list[Arrival]:
    """Send packets through a bad network.

    Losses are a two-state Markov chain (Gilbert): ``loss`` is their share, ``burst`` their mean run. Delays
    are uniform in [0, jitter_ms], so packets overtake each other, unless ``ordered``: then the late ones hold
    up those behind them. ``duplicates`` is the share that arrives a second time.
    """
    chance = random.Random(seed)
    arrivals: list[Arrival] = []
    losing, earliest = False, 0.0
    for packet in packets:
        losing = chance.random() < (1 - 1 / burst if losing else min(1.0, loss / (1 - loss) / burst))
        delay, again = chance.random() * jitter_ms, chance.random() * max(jitter_ms, 5.0)
        doubled = chance.random() < duplicates
        if losing:
            continue
        at = max(packet.at_ms + delay, earliest if ordered else 0.0)
        earliest = at
        arrivals.append(Arrival(at, packet))
        if doubled:
            arrivals.append(Arrival(at + again, packet))
    return sorted(arrivals, key=lambda arrival: arrival.at_ms)


@dataclass(slots=True)
class Heard:
    """All that a receive path gave out, and when."""

    pieces: list[Received] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def pcm(self) -> Pcm:
        """Everything in one."""
        return np.concatenate([np.zeros(0, np.int16), *(piece.pcm for piece in self.pieces)])

    @property
    def concealed(self) -> int:
        """Samples that were made up."""
        return sum(piece.concealed for piece in self.pieces)

    def add(self, pieces: Sequence[Received], now_ms: float) -> None:
        """Take note of what came out at ``now_ms``."""
        self.pieces += pieces
        self.times += [now_ms] * len(pieces)


def play(path: ReceivePath, arrivals: Sequence[Arrival], until_ms: float) -> Heard:
    """Bring packets to a receive path as they arrive, and pull after each and every 20 ms."""
    heard = Heard()
    tick = 0.0
    for arrival in arrivals:
        while tick < arrival.at_ms:
            heard.add(path.pull(tick), tick)
            tick += PULL_MS
        packet = arrival.packet
        path.insert(packet.sequence, packet.timestamp, packet.payload, arrival.at_ms, packet.source)
        heard.add(path.pull(arrival.at_ms), arrival.at_ms)
    while tick <= until_ms:
        heard.add(path.pull(tick), tick)
        tick += PULL_MS
    return heard
