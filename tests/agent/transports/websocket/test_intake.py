"""The caller's audio on its way in: nothing lost, nothing held that need not be, nothing faster than twice its pace."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.transports.websocket.intake import BURST, FULL, PACE, QUIET_S, Intake
from duologue.engine import INPUT_RATE


def ramp(count: int, start: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    return (np.arange(start, start + count) % 30_000).astype(np.int16)


def test_what_comes_in_real_time_is_never_held() -> None:
    intake = Intake(0.0)
    for n in range(200):
        intake.put(ramp(1600, n * 1600))
        given_now = intake.get(n * 0.1)
        assert np.array_equal(given_now, ramp(1600, n * 1600))
    assert not intake.waiting


def test_a_file_sent_at_once_is_heard_at_twice_its_pace_and_not_read_on_meanwhile() -> None:
    intake = Intake(0.0)
    intake.put(ramp(10 * INPUT_RATE))
    assert intake.full
    assert intake.get(0.0).size == BURST
    assert intake.get(1.0).size == BURST
    heard, now = 2 * BURST, 1.0
    while intake.waiting:
        now += 0.02
        heard += intake.get(now).size
        assert intake.full == (10 * INPUT_RATE - heard >= FULL)
    assert heard == 10 * INPUT_RATE
    assert now > (10 * INPUT_RATE - 2 * BURST) / (PACE * INPUT_RATE)


def test_a_client_is_quiet_only_when_it_is_more_than_late() -> None:
    intake = Intake(0.0)
    intake.put(ramp(1600))
    intake.get(0.0)
    assert not intake.quiet(0.1 + QUIET_S)
    assert intake.quiet(0.11 + QUIET_S)
    intake.put(ramp(1600))
    assert not intake.quiet(9.0)


def test_what_was_dropped_is_not_heard() -> None:
    intake = Intake(0.0)
    intake.put(ramp(5 * INPUT_RATE))
    intake.get(0.0)
    intake.drop()
    assert (intake.waiting, intake.full, intake.get(5.0).size) == (False, False, 0)


@given(st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 200)), max_size=30))
def test_everything_comes_out_in_order_and_within_its_pace(steps: list[tuple[int, int]]) -> None:
    intake, now, put = Intake(0.0), 0.0, 0
    out: list[np.ndarray[tuple[int], np.dtype[np.int16]]] = []
    for count, wait_ms in steps:
        intake.put(ramp(count, put))
        put += count
        now += wait_ms / 1000
        out.append(intake.get(now))
        assert sum(piece.size for piece in out) <= BURST + PACE * INPUT_RATE * now + 1
        assert out[-1].size <= BURST
    while intake.waiting:
        now += 0.02
        out.append(intake.get(now))
    assert np.array_equal(np.concatenate([*out, ramp(0)]), ramp(put))
