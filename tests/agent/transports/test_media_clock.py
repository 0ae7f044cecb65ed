from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.media_clock import FRAME_S, MAX_LATE_FRAMES, MediaClock


def test_frames_asked_for_in_time_are_due_every_20_ms_from_the_start() -> None:
    clock = MediaClock(5.0)
    ticks = [clock.next(5.0 + index * FRAME_S) for index in range(1000)]
    assert [tick.frame for tick in ticks] == list(range(1000))
    assert all(abs(tick.due - (5.0 + index * FRAME_S)) < 1e-6 for index, tick in enumerate(ticks))
    assert not any(tick.skipped for tick in ticks)


def test_a_little_late_is_caught_up_frame_by_frame() -> None:
    clock = MediaClock(0.0)
    late = FRAME_S * MAX_LATE_FRAMES
    ticks = [clock.next(late) for _ in range(MAX_LATE_FRAMES + 2)]
    assert [tick.frame for tick in ticks] == list(range(MAX_LATE_FRAMES + 2))
    assert sum(tick.due <= late + 1e-9 for tick in ticks) == MAX_LATE_FRAMES + 1


def test_after_a_long_stall_old_frames_are_skipped_and_counted() -> None:
    clock = MediaClock(0.0)
    clock.next(0.0)
    tick = clock.next(1.0)
    assert (tick.frame, tick.skipped) == (50, 49)
    assert clock.next(1.0).due > 1.0


@given(st.lists(st.floats(0, 0.5), max_size=200))
def test_media_time_never_goes_back_and_never_falls_far_behind(delays: list[float]) -> None:
    clock, now, last, sent, skipped = MediaClock(0.0), 0.0, -1, 0, 0
    for delay in delays:
        now += delay
        tick = clock.next(now)
        assert tick.frame == last + 1 + tick.skipped
        assert tick.due == tick.frame * FRAME_S
        assert now - tick.due < FRAME_S * (MAX_LATE_FRAMES + 1)
        last, sent, skipped = tick.frame, sent + 1, skipped + tick.skipped
        now = max(now, tick.due)
    assert sent + skipped == last + 1
