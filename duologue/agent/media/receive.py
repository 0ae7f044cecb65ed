"""From RTP packets, as they come, to the caller's samples, exact in time.

The timeline is the sender's: after the packet with timestamp t, as many samples have been given out as t says
have passed since the first one, whatever was lost, late, doubled, reordered or never sent (DTX). Packets in
order are decoded at once. A missing one is waited for as long as reordered ones have lately been late; then
it is restored from the next packet's in-band FEC, or else concealed. When nothing comes at all, concealed
samples follow real time, a little behind it, so that what was merely delayed still finds its place.

No I/O: the caller brings packets and the time, and pulls after each packet and every 20 ms.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from duologue.agent.media.arrivals import Arrivals
from duologue.agent.media.codec import Decoder, MalformedPacketError
from duologue.engine import Pcm
from duologue.metrics import DROPS

MAX_HELD = 64
"""Packets that may wait behind a missing one; with more, it is not waited for any longer."""

MAX_JUMP_MS = 3000
"""A timestamp further off than this is not a gap but another timeline (a restarted sender)."""

_MAX_DROPOUT = 3000  # sequence numbers a live stream may leap (RFC 3550 appendix A.1)
_MAX_MISORDER = 100  # and fall back (the same)
_MAX_MISSING = 256  # lost packets remembered, to tell a late packet from a doubled one
_STALL_STEP_MS = 20  # concealment of a stall is given out in frames
_MAX_STEP_MS = 60  # a caller that pulls later than this was held up itself: no fault of the network
_FADE_FROM_MS, _FADE_TO_MS = 100, 240  # unbroken concealment: full until, silent from


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """The caller's next samples, int16, shape (n,); ``concealed`` is n when they were made up, else 0."""

    pcm: Pcm
    concealed: int


@dataclass(frozen=True, slots=True)
class _Packet:
    sequence: int
    timestamp: int
    payload: bytes
    samples: int
    arrival: float


_Stray = tuple[int, int, int, bytes]
"""Source, sequence number, timestamp and payload of a packet that does not belong to the stream so far."""


class ReceivePath:
    """One stream's way from packets to samples at the decoder's rate.

    Everything it holds is bounded: ``MAX_HELD`` packets, and for each of them ``pull`` gives at most
    ``MAX_JUMP_MS`` of concealment. What is dropped is counted in ``DROPS`` as ``packet``, with the reason
    ``late``, ``duplicate``, ``malformed`` or ``restart``.
    """

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._rate = decoder.rate
        self._arrivals = Arrivals()
        self._held: dict[int, _Packet] = {}
        self._missing: OrderedDict[int, float] = OrderedDict()  # lost sequence number: when it was missed
        self._source: int | None = None
        self._stray: _Stray | None = None
        self._first = self._next = self._highest = self._newest_timestamp = 0
        self._anchor = (0, 0)  # a timestamp, and the sample at which it is due
        self._position = 0
        self._live: tuple[int, float, float] | None = None  # newest packet's end, arrival, length in ms
        self._concealing = 0  # samples of unbroken concealment
        self._clock: float | None = None
        self._skipped = 0.0

    @property
    def position(self) -> int:
        """Samples given out since the first packet."""
        return self._position

    @property
    def jitter_ms(self) -> float:
        """Interarrival jitter (RFC 3550 section 6.4.1), in milliseconds."""
        return self._arrivals.jitter_ms

    @property
    def reorder_wait_ms(self) -> float:
        """How long a missing packet is waited for at present, in milliseconds."""
        return self._arrivals.reorder_wait_ms

    @property
    def next_deadline_ms(self) -> float | None:
        """When ``pull`` will have something to give if no packet comes; None before the first packet."""
        if self._live is None:
            return None
        if self._held:
            return self._missed_at() + self._arrivals.reorder_wait_ms + self._skipped
        end, arrival, length = self._live
        ahead = (self._position - end) * 1000 / self._rate
        return arrival + self._arrivals.stall_limit_ms(length) + ahead + _STALL_STEP_MS + self._skipped

    def insert(self, sequence: int, timestamp: int, payload: bytes, now_ms: float, source: int = 0) -> None:
        """Take one RTP packet: 16-bit ``sequence``, 32-bit ``timestamp``, ``source`` its SSRC.

        An empty payload (padding) only uses up its sequence number. Never raises for what a sender may send.
        """
        now = self._look(now_ms)
        if self._source is None:
            self._begin(source, sequence, timestamp)
        step = _difference(sequence, self._highest, 16)
        stray, self._stray = self._stray, None
        if source == self._source and -_MAX_MISORDER <= step < _MAX_DROPOUT:
            self._file(self._highest + step, timestamp, payload, now)
        elif stray is not None and (stray[0], (stray[1] + 1) & 0xFFFF) == (source, sequence):
            # Two in a row that fit each other and not the stream: the sender has started anew.
            self._begin(*stray[:3])
            self._file(self._highest, stray[2], stray[3], now)
            self._file(self._highest + 1, timestamp, payload, now)
            return
        else:
            self._stray = (source, sequence, timestamp, payload)
        if stray is not None:
            DROPS.labels(what="packet", reason="restart").inc()

    def pull(self, now_ms: float) -> list[Received]:
        """Give all samples that are due, oldest first: after every packet, and at least every 20 ms."""
        now = self._look(now_ms)
        out: list[Received] = []
        while self._held:
            packet = self._held.pop(self._next, None)
            lost = packet is None
            if packet is None:
                missed_at = self._missed_at()
                if len(self._held) < MAX_HELD and now - missed_at < self._arrivals.reorder_wait_ms:
                    break
                packet = self._held.pop(min(self._held))
                self._give_up(packet.sequence, missed_at)
            self._next = packet.sequence + 1
            if packet.samples:
                self._release(packet, lost, out)
        if not self._held:
            self._fill_stall(now, out)
        return out

    # --- time and order -------------------------------------------------------------------------------------

    def _look(self, now_ms: float) -> float:
        """Advance the clock by what passed, less what the caller itself was held up; never backwards."""
        now = now_ms - self._skipped
        if self._clock is not None:
            held_up = now - self._clock - _MAX_STEP_MS
            if held_up > 0:
                self._skipped += held_up
                now -= held_up
            now = max(now, self._clock)
        self._clock = now
        return now

    def _begin(self, source: int, sequence: int, timestamp: int) -> None:
        """Start over with this packet as the first, at the present position."""
        if self._source is not None:
            self._decoder.reset()
            DROPS.labels(what="packet", reason="restart").inc(len(self._held))
        self._held.clear()
        self._missing.clear()
        self._source = source
        self._first = self._next = self._highest = sequence
        self._newest_timestamp = timestamp
        self._anchor = (timestamp, self._position)
        self._arrivals.restarted()

    def _file(self, sequence: int, timestamp: int, payload: bytes, now: float) -> None:
        """Hold a packet until its turn; ``sequence`` is unwrapped, ``timestamp`` is not."""
        if sequence in self._held or sequence < self._next:
            missed_at = self._missing.pop(sequence, None)
            if missed_at is not None:
                self._arrivals.reordered(now - missed_at)
            late = missed_at is not None or sequence < self._first
            DROPS.labels(what="packet", reason="late" if late else "duplicate").inc()
            return
        try:
            samples = self._decoder.samples(payload) if payload else 0
        except MalformedPacketError:
            DROPS.labels(what="packet", reason="malformed").inc()
            return
        unwrapped = self._newest_timestamp + _difference(timestamp, self._newest_timestamp, 32)
        if samples:
            self._arrivals.arrived(now, unwrapped * 1000 / self._decoder.clock)
        overtaken_at = min((held.arrival for held in self._held.values() if held.sequence > sequence),
                           default=None)
        if overtaken_at is not None:
            self._arrivals.reordered(now - overtaken_at)
        if sequence >= self._highest:
            self._highest = sequence
            self._newest_timestamp = unwrapped if samples else self._newest_timestamp
        self._held[sequence] = _Packet(sequence, unwrapped, payload, samples, now)

    def _missed_at(self) -> float:
        """When the first packet behind the gap came."""
        return min(packet.arrival for packet in self._held.values())

    def _give_up(self, before: int, missed_at: float) -> None:
        """Take the packets from the next one to the one ``before`` this as lost."""
        for sequence in range(max(self._next, before - _MAX_MISSING), before):
            self._missing[sequence] = missed_at
        while len(self._missing) > _MAX_MISSING:
            self._missing.popitem(last=False)

    # --- samples --------------------------------------------------------------------------------------------

    def _release(self, packet: _Packet, lost_before: bool, out: list[Received]) -> None:
        """Give out a packet's samples at their time, and whatever has to stand between."""
        anchor, at = self._anchor
        due = at + (packet.timestamp - anchor) * self._rate // self._decoder.clock
        if abs(due - self._position) > MAX_JUMP_MS * self._rate // 1000:
            self._anchor = (packet.timestamp, self._position)
            due = self._position
        if due > self._position:
            self._bridge(packet, due - self._position, lost_before, out)
        try:
            # Decoded even if its time is past: the next packet builds on this one's decoder state.
            pcm = self._decoder.decode(packet.payload)
        except MalformedPacketError:
            DROPS.labels(what="packet", reason="malformed").inc()
            self._conceal(due + packet.samples - self._position, out)
        else:
            past = self._position - due
            if past >= pcm.size:
                DROPS.labels(what="packet", reason="late").inc()
            else:
                self._give(pcm[past:], out)
        self._live = (due + packet.samples, packet.arrival, packet.samples * 1000 / self._rate)

    def _bridge(self, packet: _Packet, gap: int, lost: bool, out: list[Received]) -> None:
        """Fill ``gap`` samples before a packet: restored from its copy of what was lost, or made up."""
        restorable = self._decoder.fec_samples(packet.payload) if lost else 0
        self._conceal(gap - restorable, out)
        if restorable:
            kept = min(gap, restorable)
            try:
                self._give(self._decoder.decode_fec(packet.payload, restorable)[restorable - kept:], out)
            except MalformedPacketError:
                self._conceal(kept, out)

    def _fill_stall(self, now: float, out: list[Received]) -> None:
        """Let concealed time follow real time, behind by what a packet may be late, while nothing comes."""
        if self._live is None:
            return
        end, arrival, length = self._live
        passed = now - arrival - self._arrivals.stall_limit_ms(length)
        behind = end + int(passed * self._rate / 1000) - self._position
        step = _STALL_STEP_MS * self._rate // 1000
        self._conceal(behind // step * step, out)

    def _conceal(self, count: int, out: list[Received]) -> None:
        """Make up ``count`` samples (none if negative), fading to silence until something real comes."""
        if count <= 0:
            return
        fade_from, fade_to = (_FADE_FROM_MS * self._rate // 1000, _FADE_TO_MS * self._rate // 1000)
        pcm = np.zeros(count, np.int16)
        sounding = min(count, fade_to - self._concealing)
        if sounding > 0:
            made_up = self._decoder.conceal(sounding)
            if self._concealing + sounding > fade_from:
                place = np.arange(self._concealing, self._concealing + sounding)
                gain = np.clip((fade_to - place) / (fade_to - fade_from), 0.0, 1.0)
                made_up = (made_up * gain).astype(np.int16)
            pcm[:sounding] = made_up
        self._concealing += count
        self._position += count
        out.append(Received(pcm, count))

    def _give(self, pcm: Pcm, out: list[Received]) -> None:
        self._concealing = 0
        self._position += pcm.size
        out.append(Received(pcm, 0))


def _difference(value: int, reference: int, bits: int) -> int:
    """How far ``value`` is from ``reference`` on a circle of 2**bits, in [-half, half) (RFC 1982)."""
    half = 1 << bits - 1
    return (value - reference + half) % (2 * half) - half
