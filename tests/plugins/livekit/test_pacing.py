"""A reply's audio on its way into the framework."""

from __future__ import annotations

from collections.abc import AsyncIterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from livekit import rtc

from duologue.plugins.livekit.pacing import LEAD_S, Pacer, Valve, paced, pieces


def frame(samples: int, rate: int = 24_000) -> rtc.AudioFrame:
    return rtc.AudioFrame(np.arange(samples, dtype=np.int16).tobytes(), rate, 1, samples)


@given(st.lists(st.tuples(st.floats(0.001, 0.02), st.floats(0, 0.3)), max_size=50))
def test_no_more_than_the_lead_and_a_piece_is_ever_unheard(script: list[tuple[float, float]]) -> None:
    pacer, now, runs_out = Pacer(), 0.0, 0.0
    for duration, late in script:
        now += pacer.wait(now) + late
        pacer.gave(now, duration)
        runs_out = max(runs_out, now) + duration
        assert runs_out - now <= LEAD_S + duration + 1e-9


@given(st.lists(st.floats(0.001, 0.02), min_size=1, max_size=50))
def test_whoever_comes_on_time_lets_nothing_run_dry(durations: list[float]) -> None:
    pacer, now, given_s = Pacer(), 0.0, 0.0
    for duration in durations:
        now += pacer.wait(now)
        assert now <= given_s + 1e-9
        pacer.gave(now, duration)
        given_s += duration


@pytest.mark.parametrize("samples", [1, 479, 480, 481, 2400])
def test_pieces_are_the_frame(samples: int) -> None:
    cut = pieces(frame(samples))
    assert max(piece.samples_per_channel for piece in cut) <= 480
    assert np.concatenate([piece.data for piece in cut]).tolist() == list(range(samples))


async def from_list(frames: list[rtc.AudioFrame]) -> AsyncIterator[rtc.AudioFrame]:
    for each in frames:
        yield each


async def test_a_held_valve_keeps_the_rest_and_a_shut_one_ends_it() -> None:
    valve = Valve()
    heard = paced(from_list([frame(480), frame(480), frame(480)]), valve)
    await anext(heard)
    valve.hold()
    waiting = anext(heard)
    valve.release()
    assert (await waiting).samples_per_channel == 480
    valve.shut()
    valve.hold()
    assert [piece async for piece in heard] == []
