"""Every press of a key is told once, and every key sent is heard as one press."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.sip.media.keypad import KEYS, EventPacket, KeypadReceiver, KeypadSender
from tests.agent.media import steady


def event(code: int, duration: int, end: bool = False) -> bytes:
    """RFC 4733 section 2.3: event, E, R, volume, duration."""
    return struct.pack("!BBH", code, (0x80 if end else 0) | 10, duration)


def press(code: int, at: int, packets: int = 4) -> list[tuple[int, bytes]]:
    """A press as RFC 4733 section 2.5.1 has it sent: growing durations, the last packet three times."""
    return [*((at, event(code, 160 * number)) for number in range(1, packets + 1)),
            *[(at, event(code, 160 * (packets + 1), True))] * 3]


def told(packets: list[tuple[int, bytes]]) -> str:
    receiver = KeypadReceiver()
    return "".join(receiver.take(timestamp, payload) for timestamp, payload in packets)


def test_a_press_is_told_once_though_its_end_is_sent_three_times() -> None:
    assert told(press(5, 8000)) == "5"


def test_the_same_key_twice_is_two_presses() -> None:
    assert told(press(1, 8000) + press(1, 12_000)) == "11"


@steady
@given(st.lists(st.integers(0, 15), min_size=1, max_size=12), st.data())
def test_presses_survive_loss_of_any_but_one_of_their_packets(codes: list[int], data: st.DataObject) -> None:
    packets: list[tuple[int, bytes]] = []
    for number, code in enumerate(codes):
        all_of_it = press(code, 5000 * number)
        kept = data.draw(st.sets(st.integers(0, len(all_of_it) - 1), min_size=1))
        packets += [all_of_it[index] for index in sorted(kept)]
    assert told(packets) == "".join(KEYS[code] for code in codes)


@steady
@given(st.lists(st.integers(0, 11), min_size=1, max_size=6))
def test_stragglers_of_an_earlier_press_are_no_press(codes: list[int]) -> None:
    packets = [packet for number, code in enumerate(codes) for packet in press(code, 5000 * number)]
    late = [packets[index] for index in range(0, len(packets), 3)]
    assert told(packets + late) == "".join(KEYS[code] for code in codes)


def test_a_press_longer_than_a_duration_can_say_is_one_press() -> None:
    long_press = [(8000, event(9, 0xFFFF)), (8000 + 0xFFFF, event(9, 400)), (8000 + 0xFFFF, event(9, 560, True))]
    assert told(long_press) == "9"
    assert told([(8000, event(9, 0xFFFF, True)), (80_000, event(9, 400))]) == "99"


def test_what_is_no_key_is_nothing() -> None:
    assert told([(1, event(16, 160)), (2, b"\x01"), (3, b""), (4, event(200, 1))]) == ""


# --- sending ------------------------------------------------------------------------------------------------


def sent(keys: str, frames: int = 200, clock: int = 8000) -> list[tuple[int, EventPacket]]:
    sender = KeypadSender(clock)
    sender.press(keys)
    return [(frame, packet) for frame in range(frames) if (packet := sender.next(frame)) is not None]


def test_a_key_is_one_event_with_three_ends() -> None:
    packets = [packet for _, packet in sent("7")]
    assert {packet.frame for packet in packets} == {0}
    assert [packet.marker for packet in packets] == [True] + [False] * 6
    fields = [struct.unpack("!BBH", packet.payload) for packet in packets]
    assert {code for code, _, _ in fields} == {7}
    assert [duration for _, _, duration in fields] == [160, 320, 480, 640, 800, 800, 800]
    assert [flags >> 7 for _, flags, _ in fields] == [0, 0, 0, 0, 1, 1, 1]


def test_durations_count_at_the_clock_agreed_on() -> None:
    assert struct.unpack("!BBH", sent("7", clock=48_000)[-1][1].payload)[2] == 4800


def test_there_is_room_for_voice_between_keys() -> None:
    frames = [frame for frame, _ in sent("12")]
    assert frames[7] - frames[6] > 3  # at least 60 ms


@steady
@given(st.text(alphabet=KEYS, max_size=20))
def test_what_one_side_presses_the_other_is_told(keys: str) -> None:
    receiver = KeypadReceiver()
    assert "".join(receiver.take(160 * packet.frame, packet.payload) for _, packet in sent(keys, 400)) == keys


def test_keys_that_no_telephone_has_are_refused_whole() -> None:
    sender = KeypadSender(8000)
    with pytest.raises(ValueError, match="not on a telephone: E x"):
        sender.press("12xE")
    with pytest.raises(ValueError, match="64"):
        sender.press("1" * 65)
    assert not sender.busy
    assert sender.next(0) is None
