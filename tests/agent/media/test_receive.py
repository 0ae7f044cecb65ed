"""The receive path, with a codec whose samples say which packet they belong to."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.media.arrivals import STALL_MAX_MS, Arrivals
from duologue.agent.media.codec import MalformedPacketError
from duologue.agent.media.receive import MAX_HELD, ReceivePath
from duologue.engine import Pcm
from duologue.metrics import DROPS
from tests.agent.media import steady
from tests.agent.media.network import PULL_MS, Arrival, Sent, impair, play

RATE, CLOCK = 16_000, 48_000
MADE_UP = -1
RESTORED = 10_000
DURATIONS_MS = (2.5, 5, 10, 20, 40, 60, 80, 100, 120)


class LabelDecoder:
    """Payload (label, samples, restorable): decodes to that many samples of that value."""

    rate, clock = RATE, CLOCK

    def samples(self, payload: bytes) -> int:
        if len(payload) != 6:
            raise MalformedPacketError("not a label")
        return int(struct.unpack("<HHH", payload)[1])

    def decode(self, payload: bytes) -> Pcm:
        label, samples, _ = struct.unpack("<HHH", payload)
        if label == 0:
            raise MalformedPacketError("label 0")
        return np.full(samples, label, np.int16)

    def fec_samples(self, payload: bytes) -> int:
        return int(struct.unpack("<HHH", payload)[2])

    def decode_fec(self, payload: bytes, samples: int) -> Pcm:
        return np.full(samples, RESTORED + struct.unpack("<HHH", payload)[0] - 1, np.int16)

    def conceal(self, samples: int) -> Pcm:
        return np.full(samples, MADE_UP, np.int16)

    def reset(self) -> None:
        pass


def stream(durations_ms: Sequence[float], *, sequence: int = 0, timestamp: int = 0, start_ms: float = 0.0,
           pauses_ms: Sequence[float] = (), fec: bool = False, source: int = 0, label: int = 1) -> list[Sent]:
    """Packets of these lengths, the i-th one after a pause (DTX) of ``pauses_ms[i]``."""
    sent, elapsed = [], 0.0
    for index, length in enumerate(durations_ms):
        elapsed += pauses_ms[index] if index < len(pauses_ms) else 0
        samples = int(length * RATE / 1000)
        payload = struct.pack("<HHH", label + index, samples, samples if fec else 0)
        sent.append(Sent((sequence + index) & 0xFFFF, (timestamp + int(elapsed * CLOCK / 1000)) & 0xFFFF_FFFF,
                         payload, start_ms + elapsed + length, source))
        elapsed += length
    return sent


def truth(sent: Sequence[Sent], first: Sent, count: int) -> Pcm:
    """The label that each of ``count`` samples since ``first`` belongs to, 0 where nothing was sent."""
    labels = np.zeros(count, np.int16)
    for packet in sent:
        label, samples, _ = struct.unpack("<HHH", packet.payload)
        moved = (packet.timestamp - first.timestamp + 2**31) % 2**32 - 2**31
        at = moved * RATE // CLOCK
        labels[max(at, 0):max(at + samples, 0)] = label
    return labels


def dropped(reason: str) -> float:
    return float(DROPS.labels(what="packet", reason=reason)._value.get())


def end_of(sent: Sequence[Sent], first: Sent) -> int:
    """Samples from the start of ``first`` to the end of the last packet."""
    span = (sent[-1].timestamp - first.timestamp) % 2**32
    return span * RATE // CLOCK + int(struct.unpack("<HHH", sent[-1].payload)[1])


def test_packets_in_order_come_out_at_once() -> None:
    sent = stream([20] * 10)
    path = ReceivePath(LabelDecoder())
    for packet in sent:
        path.insert(packet.sequence, packet.timestamp, packet.payload, packet.at_ms)
        assert [piece.pcm.size for piece in path.pull(packet.at_ms)] == [320]


def test_a_lost_packet_costs_no_samples_and_no_delay_afterwards() -> None:
    sent = stream([20] * 20)
    arrivals = impair([packet for packet in sent if packet.sequence != 5])
    heard = play(ReceivePath(LabelDecoder()), arrivals, sent[-1].at_ms)
    expected = truth(sent, sent[0], 6400)
    expected[5 * 320:6 * 320] = MADE_UP
    assert np.array_equal(heard.pcm, expected)
    assert heard.concealed == 320
    last_at = [time for time, piece in zip(heard.times, heard.pieces, strict=True) if piece.pcm[0] == 20]
    assert last_at == [sent[-1].at_ms]


def test_a_lost_packet_is_restored_from_the_next_ones_copy() -> None:
    sent = stream([20] * 20, fec=True)
    heard = play(ReceivePath(LabelDecoder()), impair([p for p in sent if p.sequence not in (5, 6)]), 400)
    frames = heard.pcm.reshape(-1, 320)[:, 0].tolist()
    assert frames[4:8] == [5, MADE_UP, RESTORED + 7, 8]
    assert heard.concealed == 320


def test_a_reordered_packet_is_waited_for_and_nothing_is_made_up() -> None:
    sent = stream([20] * 10)
    order = [0, 1, 3, 2, 4, 5, 7, 8, 6, 9]
    arrivals = [Arrival(20.0 * place + 5, sent[index]) for place, index in enumerate(order)]
    arrivals[8] = Arrival(arrivals[6].at_ms + 28, sent[6])  # 28 ms after the first that overtook it
    arrivals[7:9] = sorted(arrivals[7:9], key=lambda arrival: arrival.at_ms)
    path = ReceivePath(LabelDecoder())
    heard = play(path, arrivals, 205)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == list(range(1, 11))
    assert heard.concealed == 0
    assert path.reorder_wait_ms > 32


def test_the_wait_grows_with_late_packets_and_shrinks_again() -> None:
    learned = Arrivals()
    assert learned.reorder_wait_ms == pytest.approx(30)
    learned.reordered(70)
    assert learned.reorder_wait_ms == pytest.approx(75)
    learned.reordered(10_000)
    assert learned.reorder_wait_ms == 150
    for index in range(5000):
        learned.arrived(index * 20.0, index * 20.0)
    assert learned.reorder_wait_ms == 20


def test_jitter_is_that_of_rfc_3550() -> None:
    # The recursion of section 6.4.1 written out for transits 0, 16, 0: J = 1, then 1 + (16 - 1) / 16.
    learned = Arrivals()
    for arrival, media in ((0.0, 0.0), (36.0, 20.0), (40.0, 40.0)):
        learned.arrived(arrival, media)
    assert learned.jitter_ms == pytest.approx(1.9375)


def test_a_packet_that_comes_after_its_time_was_given_out_is_dropped_and_counted() -> None:
    sent = stream([20] * 20)
    arrivals = impair([packet for packet in sent if packet.sequence != 5])
    arrivals.append(Arrival(300.0, sent[5]))
    arrivals.sort(key=lambda arrival: arrival.at_ms)
    before = dropped("late")
    path = ReceivePath(LabelDecoder())
    wait = path.reorder_wait_ms
    heard = play(path, arrivals, 400)
    assert dropped("late") - before == 1
    assert 6 not in heard.pcm
    assert path.reorder_wait_ms > wait


def test_a_doubled_packet_is_heard_once_and_counted() -> None:
    sent = stream([20] * 20)
    before = dropped("duplicate")
    heard = play(ReceivePath(LabelDecoder()), impair(sent, duplicates=1.0), 400)
    assert np.array_equal(heard.pcm, truth(sent, sent[0], 6400))
    assert dropped("duplicate") - before == 20


def test_a_packet_doubled_while_it_is_held_does_not_prolong_the_wait() -> None:
    sent = stream([20] * 3)
    path = ReceivePath(LabelDecoder())
    for packet, now in ((sent[0], 20.0), (sent[2], 60.0), (sent[2], 80.0)):
        path.insert(packet.sequence, packet.timestamp, packet.payload, now)
        path.pull(now)
    assert path.next_deadline_ms == pytest.approx(60 + path.reorder_wait_ms)


def test_a_pause_in_sending_is_filled_exactly() -> None:
    sent = stream([20] * 6, pauses_ms=[0, 0, 0, 37.5, 400])
    heard = play(ReceivePath(LabelDecoder()), impair(sent), sent[-1].at_ms)
    expected = truth(sent, sent[0], end_of(sent, sent[0]))
    assert heard.pcm.size == expected.size == int((120 + 437.5) * 16)
    assert np.array_equal(heard.pcm[expected > 0], expected[expected > 0])
    assert heard.concealed == int(437.5 * 16)


def test_a_stalled_stream_goes_on_in_real_time() -> None:
    sent = stream([20] * 50)
    path = ReceivePath(LabelDecoder())
    heard = play(path, impair(sent), 11_000)
    extra = heard.pcm.size - 16_000
    passed = 11_000 - sent[-1].at_ms
    assert passed - STALL_MAX_MS - PULL_MS <= extra / 16 <= passed


def test_what_a_stall_delayed_is_not_heard_at_a_second_time() -> None:
    sent = stream([20] * 100)
    held_up = [Arrival(max(packet.at_ms, 1500.0) if packet.sequence >= 50 else packet.at_ms, packet)
               for packet in sent]
    before = dropped("late")
    heard = play(ReceivePath(LabelDecoder()), held_up, 2000)
    expected = truth(sent, sent[0], 32_000)
    assert dropped("late") - before == 25 - len(set(heard.pcm[16_000:24_000].tolist()) - {MADE_UP, 0})
    assert heard.pcm.size == 32_000
    real = heard.pcm != MADE_UP
    real[heard.pcm == 0] = False  # long concealment fades to zero
    assert np.array_equal(heard.pcm[real], expected[real])
    assert np.array_equal(heard.pcm[1500 * 16:], expected[1500 * 16:])


def test_a_stream_that_stops_again_after_a_stall_is_not_ahead_of_real_time() -> None:
    sent = stream([20] * 51)
    arrivals = [*impair(sent[:50]), Arrival(1800.0, sent[50])]
    heard = play(ReceivePath(LabelDecoder()), arrivals, 3000)
    assert heard.pcm.size <= 3000 * 16 - (1800 - sent[50].at_ms) * 16


def test_a_delay_that_grows_for_good_does_not_silence_the_stream() -> None:
    sent = stream([20] * 200)
    later = [Arrival(packet.at_ms + (250 if packet.sequence >= 50 else 0), packet) for packet in sent]
    heard = play(ReceivePath(LabelDecoder()), later, 4250)
    expected = truth(sent, sent[0], 64_000)
    assert np.array_equal(heard.pcm[24_000:], expected[24_000:])


def test_long_concealment_fades_to_silence() -> None:
    class Loud(LabelDecoder):
        def conceal(self, samples: int) -> Pcm:
            return np.full(samples, 10_000, np.int16)

    sent = stream([20] * 50)
    heard = play(ReceivePath(Loud()), impair(sent[:5] + sent[45:]), 1000)
    made_up = heard.pcm[5 * 320:45 * 320].astype(int)
    assert (made_up[:1600] == 10_000).all()
    assert (np.diff(made_up) <= 0).all()
    assert (np.abs(np.diff(made_up)) < 10).all()
    assert (made_up[240 * 16:] == 0).all()


def test_a_path_nobody_pulled_for_a_while_does_not_blame_the_network() -> None:
    sent = stream([20] * 100)
    path = ReceivePath(LabelDecoder())
    heard = play(path, impair(sent[:50]), 1000)
    heard.add(path.pull(1400), 1400)  # the loop hung for 400 ms; its packets still wait in the socket
    for packet in sent[50:70]:
        path.insert(packet.sequence, packet.timestamp, packet.payload, 1400)
        heard.add(path.pull(1400), 1400)
    assert heard.concealed == 0
    assert np.array_equal(heard.pcm, truth(sent[:70], sent[0], 70 * 320))


@pytest.mark.parametrize("source", [0, 7])
def test_a_sender_that_starts_anew_is_followed_without_a_gap(source: int) -> None:
    first = stream([20] * 20, sequence=100, timestamp=5000)
    second = stream([20] * 20, sequence=40_000, timestamp=3_000_000_000, start_ms=400, source=source,
                    label=21)
    heard = play(ReceivePath(LabelDecoder()), impair(first + second), 800)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == list(range(1, 41))


def test_one_stray_packet_restarts_nothing() -> None:
    sent = stream([20] * 20, sequence=100)
    stray = stream([20], sequence=40_000, timestamp=99, start_ms=190, label=99)
    before = dropped("restart")
    heard = play(ReceivePath(LabelDecoder()), impair(sent[:10] + stray + sent[10:]), 400)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == list(range(1, 21))
    assert dropped("restart") - before == 1


@pytest.mark.parametrize("leap_s", [-600, 600])
def test_a_timestamp_that_leaps_is_no_gap(leap_s: int) -> None:
    sent = stream([20] * 10, timestamp=2**31)
    leapt = [Sent(packet.sequence, (packet.timestamp + leap_s * CLOCK) % 2**32, packet.payload, packet.at_ms)
             for packet in sent[5:]]
    heard = play(ReceivePath(LabelDecoder()), impair(sent[:5] + leapt), 200)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == list(range(1, 11))


@pytest.mark.parametrize("payload", [b"junk", struct.pack("<HHH", 0, 320, 0)])
def test_a_malformed_packet_is_concealed_and_counted(payload: bytes) -> None:
    sent = stream([20] * 10)
    sent[4] = Sent(4, sent[4].timestamp, payload, sent[4].at_ms)
    before = dropped("malformed")
    heard = play(ReceivePath(LabelDecoder()), impair(sent), 200)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == [1, 2, 3, 4, MADE_UP, 6, 7, 8, 9, 10]
    assert dropped("malformed") - before == 1


def test_padding_uses_up_a_sequence_number_and_no_time() -> None:
    sent = stream([20] * 4)
    later = [Sent(packet.sequence + 1, packet.timestamp, packet.payload, packet.at_ms) for packet in sent[2:]]
    padding = Sent(2, sent[1].timestamp, b"", sent[1].at_ms)
    heard = play(ReceivePath(LabelDecoder()), impair([*sent[:2], padding, *later]), 80)
    assert heard.pcm.reshape(-1, 320)[:, 0].tolist() == [1, 2, 3, 4]


def test_packets_held_behind_a_gap_are_bounded() -> None:
    sent = stream([20] * (MAX_HELD + 5))
    path = ReceivePath(LabelDecoder())
    given: list[int] = []
    for packet in [sent[0], *sent[2:]]:  # all within one millisecond: no wait can have run out
        path.insert(packet.sequence, packet.timestamp, packet.payload, 1.0)
        given += [piece.pcm.size for piece in path.pull(1.0)]
    assert sum(given) == 320 * (MAX_HELD + 5)


def test_the_next_deadline_is_when_a_pull_gives_something() -> None:
    sent = stream([20] * 3)
    path = ReceivePath(LabelDecoder())
    assert path.next_deadline_ms is None
    for packet in (sent[0], sent[2]):
        path.insert(packet.sequence, packet.timestamp, packet.payload, packet.at_ms)
        path.pull(packet.at_ms)
    deadline = path.next_deadline_ms
    assert deadline is not None
    assert deadline == pytest.approx(60 + path.reorder_wait_ms)
    assert not path.pull(deadline - 0.1)
    assert path.pull(deadline + 0.1)
    for now in range(100, 1000, 10):
        due = path.next_deadline_ms
        assert due is not None
        assert bool(path.pull(now)) == (now >= due)


@steady
@given(
    lengths=st.lists(st.sampled_from(DURATIONS_MS), min_size=1, max_size=60),
    pauses=st.lists(st.sampled_from([0, 0, 0, 0, 7.5, 100, 400]), max_size=60),
    loss=st.floats(0, 0.6), burst=st.floats(1, 8), jitter=st.floats(0, 250), duplicates=st.floats(0, 0.5),
    ordered=st.booleans(), seed=st.integers(0, 2**32), sequence=st.sampled_from([0, 65_500, 65_535, 32_760]),
    timestamp=st.sampled_from([0, 2**32 - 1, 2**32 - 30_000, 2**31 - 9000]), fec=st.booleans(),
)
def test_every_sample_is_at_its_time_whatever_the_network_does(
        lengths: list[float], pauses: list[float], loss: float, burst: float, jitter: float,
        duplicates: float, ordered: bool, seed: int, sequence: int, timestamp: int, fec: bool) -> None:
    sent = stream(lengths, sequence=sequence, timestamp=timestamp, pauses_ms=pauses, fec=fec)
    arrivals = impair(sent, loss=loss, burst=burst, jitter_ms=jitter, duplicates=duplicates, ordered=ordered,
                      seed=seed)
    until = sent[-1].at_ms + 1000
    path = ReceivePath(LabelDecoder())
    heard = play(path, arrivals, until)
    pcm = heard.pcm
    assert path.position == pcm.size
    if not arrivals:
        assert pcm.size == 0
        return
    first, last = arrivals[0].packet, max(arrivals, key=lambda arrival: arrival.packet.at_ms)
    end = end_of([first, last.packet], first)
    # All that was sent up to the last packet that came, and then the stall's real time, never more.
    assert pcm.size >= end
    assert pcm.size <= end + (until - last.packet.at_ms) * 16
    labels = truth(sent, first, pcm.size + 20_000)[:pcm.size]
    made_up = np.concatenate([np.full(piece.pcm.size, piece.concealed > 0) for piece in heard.pieces])
    restored = ~made_up & (pcm >= RESTORED)
    real = ~made_up & ~restored
    assert np.array_equal(pcm[real], labels[real])
    assert int(made_up.sum()) == heard.concealed
    assert all(piece.concealed in (0, piece.pcm.size) for piece in heard.pieces)


@steady
@given(seed=st.integers(0, 2**32), jitter=st.floats(0, 60))
def test_at_sixty_milliseconds_of_jitter_only_real_losses_are_concealed(seed: int, jitter: float) -> None:
    sent = stream([20] * 400)
    arrivals = impair(sent, loss=0.1, jitter_ms=jitter, seed=seed)
    heard = play(ReceivePath(LabelDecoder()), arrivals, sent[-1].at_ms)
    lost = 400 - len({arrival.packet.sequence for arrival in arrivals})
    # A few packets may be missed before the path has learned how late they come.
    assert heard.concealed <= (lost + 8) * 320
