from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.chunking import NOW, ChunkPlanner, Window
from duologue.engine.config import ChunkingConfig
from tests.engine.playback import play

FRAME_S = 0.04


def configs(ramp: st.SearchStrategy[bool]) -> st.SearchStrategy[ChunkingConfig]:
    return st.builds(ChunkingConfig, initial_codec_chunk_frames=st.integers(1, 8),
                     codec_chunk_frames=st.integers(1, 30), codec_left_context_frames=st.integers(0, 40),
                     codec_chunk_ramp=ramp)


FIXED = configs(st.just(False))
PUSHES = st.lists(st.integers(0, 50), max_size=20)
WAITS = st.lists(st.floats(0, 0.5), min_size=20, max_size=20)


def plan(config: ChunkingConfig, pushes: list[int], waits: list[float] | None = None) -> list[Window]:
    """The windows of frames that come in ``pushes``, each ``waits`` seconds after the last; decoding takes 1 ms."""
    planner = ChunkPlanner(config, FRAME_S)
    now = 0.0
    windows = []

    def decode() -> None:
        nonlocal now
        while (window := planner.cut(now)) is not None:
            windows.append(window)
            now += 0.001
            planner.sent(now)

    for n, wait in zip(pushes, waits or [0.0] * len(pushes), strict=False):
        now += wait
        decode()
        planner.push(n)
        decode()
    planner.finish()
    decode()
    assert planner.done
    return windows


@settings(deadline=None)
@given(configs(st.booleans()), PUSHES, WAITS)
def test_windows_cover_every_frame_once_and_in_order(
        config: ChunkingConfig, pushes: list[int], waits: list[float]) -> None:
    windows = plan(config, pushes, waits)
    assert [n for w in windows for n in range(w.start, w.end)] == list(range(sum(pushes)))
    assert all(w.frames > 0 for w in windows)


@settings(deadline=None)
@given(configs(st.booleans()), PUSHES, WAITS)
def test_no_window_is_larger_than_the_config_says_and_the_first_is_the_initial_one(
        config: ChunkingConfig, pushes: list[int], waits: list[float]) -> None:
    first, *others = plan(config, [config.initial_codec_chunk_frames, *pushes], [0.0, *waits])
    assert first.frames == config.initial_codec_chunk_frames
    assert all(window.frames <= config.codec_chunk_frames for window in others)


@settings(deadline=None)
@given(FIXED, PUSHES, WAITS)
def test_without_a_ramp_neither_how_nor_when_frames_come_changes_the_windows(
        config: ChunkingConfig, pushes: list[int], waits: list[float]) -> None:
    assert plan(config, pushes, waits) == plan(config, [sum(pushes)])


@settings(deadline=None)
@given(configs(st.booleans()), PUSHES, WAITS)
def test_a_window_has_all_the_left_context_there_is_up_to_the_limit(
        config: ChunkingConfig, pushes: list[int], waits: list[float]) -> None:
    for window in plan(config, pushes, waits):
        assert window.left_context == min(window.start, config.codec_left_context_frames)


@settings(deadline=None)
@given(configs(st.booleans()), st.integers(0, 10))
def test_a_stream_that_ends_on_a_boundary_has_no_tail(config: ChunkingConfig, chunks: int) -> None:
    planner = ChunkPlanner(config, FRAME_S)
    planner.push(config.initial_codec_chunk_frames + chunks * config.codec_chunk_frames)
    now = 0.0
    while planner.cut(now):
        planner.sent(now)
    planner.finish()
    assert planner.done
    assert planner.due() is None
    assert planner.cut(now) is None


def test_the_first_window_is_small_and_the_tail_is_what_is_left() -> None:
    config = ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=5, codec_left_context_frames=3)
    assert plan(config, [9]) == [Window(0, 2, 0), Window(2, 7, 2), Window(7, 9, 3)]


@settings(deadline=None)
@given(configs(st.booleans()), PUSHES, WAITS)
def test_decoding_by_windows_gives_what_decoding_at_once_gives(
        config: ChunkingConfig, pushes: list[int], waits: list[float]) -> None:
    """A decoder that looks ``reach`` frames back, over frames 0, 1, 2, ...: sums of what it sees."""
    reach = config.codec_left_context_frames

    def decode(frames: list[int]) -> list[int]:
        return [sum(frames[max(0, i - reach):i + 1]) for i in range(len(frames))]

    total = sum(pushes)
    pieces = [decode(list(range(w.start - w.left_context, w.end)))[w.left_context:]
              for w in plan(config, pushes, waits)]
    assert [n for piece in pieces for n in piece] == decode(list(range(total)))


def test_frames_after_the_end_are_refused() -> None:
    planner = ChunkPlanner(ChunkingConfig(), FRAME_S)
    planner.finish()
    with pytest.raises(ValueError, match="finished"):
        planner.push(1)


def test_one_window_is_decoded_at_a_time() -> None:
    planner = ChunkPlanner(ChunkingConfig(initial_codec_chunk_frames=1, codec_chunk_frames=1), FRAME_S)
    planner.push(3)
    with pytest.raises(ValueError, match="no window"):
        planner.sent(0.0)
    assert planner.cut(0.0) == Window(0, 1, 0)
    assert planner.due() is None
    assert planner.cut(1.0) is None
    planner.sent(1.0)
    assert planner.due() == NOW


# --- playback -------------------------------------------------------------------------------------------------

GAPS = st.lists(st.floats(0, 1), min_size=1, max_size=120)
"""Shares of the longest gap between two frames."""


@settings(deadline=None)
@given(st.integers(1, 8), st.integers(1, 30), GAPS, st.floats(0, 0.5), st.floats(0, 0.4), st.floats(0, 0.5))
def test_playback_never_stalls_after_the_first_chunk(
        initial: int, chunk: int, gaps: list[float], overhead: float, each: float, jitter: float) -> None:
    """Whatever the rhythm, if no frame takes longer to make, or to be decoded alone, than it lasts (RTF < 1).

    Decoding costs a constant (``overhead``) and so much a frame (``each``), of which half may be jitter.
    """
    config = ChunkingConfig(initial_codec_chunk_frames=initial, codec_chunk_frames=chunk)
    arrivals = list(accumulate(gap * FRAME_S for gap in gaps))

    def cost_s(window: Window) -> float:
        late = jitter * (window.start * 7919 % 101) / 101
        return FRAME_S * (overhead + each * window.frames) * (1 - late)

    played = play(ChunkPlanner(config, FRAME_S), arrivals, FRAME_S, cost_s)
    # A decoder that is at work when a frame comes begins with it a little later.
    assert sum(played.stalls) <= 1e-9, played


@pytest.mark.parametrize("rtf", [0.2, 0.5, 0.9])
def test_chunks_grow_to_the_full_size_where_frames_come_faster_than_they_are_played(rtf: float) -> None:
    config = ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=10)
    arrivals = [rtf * FRAME_S * (i + 1) for i in range(500)]
    played = play(ChunkPlanner(config, FRAME_S), arrivals, FRAME_S, lambda window: 0.004)
    sizes = [window.frames for window in played.windows]
    assert played.stalls == ()
    assert sizes[:1] == [2]
    assert sizes[1] < 10 or rtf < 0.3
    assert 10 in sizes


@pytest.mark.parametrize("rtf", [0.4, 0.5, 0.65])
def test_without_a_ramp_a_small_chunk_and_then_a_long_one_stall(rtf: float) -> None:
    """4 frames and then 25, of 80 ms each, as omni models are served: 0.4 to 1.4 s of silence after 320 ms."""
    config = ChunkingConfig(initial_codec_chunk_frames=4, codec_chunk_frames=25, codec_chunk_ramp=False)
    arrivals = [rtf * 0.08 * (i + 1) for i in range(200)]
    fixed = play(ChunkPlanner(config, 0.08), arrivals, 0.08, lambda window: 0.02)
    ramped = play(ChunkPlanner(config.model_copy(update={"codec_chunk_ramp": True}), 0.08), arrivals, 0.08,
                  lambda window: 0.02)
    assert 0.4 <= max(fixed.stalls) <= 1.4
    assert ramped.stalls == ()
    assert ramped.first_audio_s == fixed.first_audio_s


def test_what_is_left_of_a_burst_is_decoded_before_playback_reaches_it() -> None:
    """A talker that writes a unit's 25 frames in 0.2 s and then waits for the next unit's text."""
    config = ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=10)
    arrivals = [unit + 0.008 * (i + 1) for unit in range(5) for i in range(25)]
    assert play(ChunkPlanner(config, FRAME_S), arrivals, FRAME_S, lambda window: 0.005).stalls == ()


def test_a_decoder_that_is_late_gets_chunks_that_it_decodes_faster_than_they_are_played() -> None:
    config = ChunkingConfig(initial_codec_chunk_frames=1, codec_chunk_frames=20)
    arrivals = [0.5 * FRAME_S * (i + 1) for i in range(200)]
    played = play(ChunkPlanner(config, FRAME_S), arrivals, FRAME_S, lambda window: 0.15)
    # 150 ms are 3.75 frames: chunks of one frame each would take 30 s for 8 s of sound.
    assert len(played.stalls) < 10
    assert sum(played.stalls) < 0.6
