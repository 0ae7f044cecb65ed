from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from duologue.engine.config import AdmissionConfig
from duologue.engine.headroom import Headroom

PERIOD = 0.08


def headroom(sessions: int = 0, measured: float | None = None, **config: float) -> Headroom:
    made = Headroom(AdmissionConfig.model_validate(config), PERIOD)
    made.sessions = sessions
    if measured is not None:
        made.observe(measured)
    return made


@given(st.floats(0, 10), st.floats(0.01, 1))
def test_the_first_session_always_fits(measured: float, target: float) -> None:
    assert headroom(0, measured, target_load=target).fits


@given(st.integers(1, 50), st.floats(0.0001, 0.2), st.floats(0.1, 1))
def test_a_session_fits_when_the_grown_p99_fits_the_period(sessions: int, measured: float, target: float) -> None:
    grown = measured * (sessions + 1) / sessions
    assume(abs(grown - target * PERIOD) > 1e-12)
    assert headroom(sessions, measured, target_load=target).fits == (grown <= target * PERIOD)


@given(st.integers(1, 200), st.floats(0.001, 0.02))
def test_a_crowd_is_not_let_in_on_what_one_session_cost(crowd: int, cost: float) -> None:
    room = headroom(1, cost)
    for _ in range(crowd):
        room.sessions += room.fits
    assert room.sessions * cost <= 0.8 * PERIOD or room.sessions == 1


def test_one_slow_unit_in_a_hundred_does_not_close_the_door_and_two_do() -> None:
    room = headroom(1)
    for n in range(200):
        room.observe(1.0 if n < 2 else 0.001)
    assert room.fits
    assert room.p99_s == 0.001
    room.observe(1.0)
    assert not room.fits


def test_a_caller_who_speaks_now_and_then_leaves_room_for_another() -> None:
    # What one caller was measured to cost: 3.4 ms a unit on average, 40 ms while speaking.
    room = headroom(1)
    for n in range(500):
        room.observe(0.040 if n % 12 == 0 else 0.0005)
    assert room.p99_s == 0.040
    assert room.fits


def test_a_first_unit_that_is_slow_does_not_close_the_door() -> None:
    room = headroom(1)
    for seconds in (0.95, 0.001, 0.001):
        room.observe(seconds)
    assert room.fits


def test_old_measurements_are_forgotten() -> None:
    room = headroom(1, 1.0, window_units=10)
    for _ in range(10):
        room.observe(0.001)
    assert room.fits
