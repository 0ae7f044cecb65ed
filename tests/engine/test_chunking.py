from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.chunking import ChunkPlanner, Window
from duologue.engine.config import ChunkingConfig

CONFIGS = st.builds(ChunkingConfig, initial_codec_chunk_frames=st.integers(1, 8),
                    codec_chunk_frames=st.integers(1, 30), codec_left_context_frames=st.integers(0, 40))


def plan(config: ChunkingConfig, pushes: list[int]) -> list[Window]:
    planner = ChunkPlanner(config)
    return [window for n in pushes for window in planner.push(n)] + planner.finish()


@given(CONFIGS, st.lists(st.integers(0, 50), max_size=20))
def test_windows_cover_every_frame_once_and_in_order(config: ChunkingConfig, pushes: list[int]) -> None:
    windows = plan(config, pushes)
    assert [n for w in windows for n in range(w.start, w.end)] == list(range(sum(pushes)))
    assert all(w.frames > 0 for w in windows)


@given(CONFIGS, st.lists(st.integers(0, 50), max_size=20))
def test_how_the_frames_arrive_does_not_change_the_windows(config: ChunkingConfig, pushes: list[int]) -> None:
    assert plan(config, pushes) == plan(config, [sum(pushes)])


@given(CONFIGS, st.lists(st.integers(0, 50), max_size=20))
def test_a_window_has_all_the_left_context_there_is_up_to_the_limit(
        config: ChunkingConfig, pushes: list[int]) -> None:
    for window in plan(config, pushes):
        assert window.left_context == min(window.start, config.codec_left_context_frames)


@given(CONFIGS, st.integers(0, 10))
def test_a_stream_that_ends_on_a_boundary_has_no_tail(config: ChunkingConfig, chunks: int) -> None:
    planner = ChunkPlanner(config)
    planner.push(config.initial_codec_chunk_frames + chunks * config.codec_chunk_frames)
    assert planner.finish() == []


def test_the_first_window_is_small_and_the_tail_is_what_is_left() -> None:
    config = ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=5, codec_left_context_frames=3)
    assert plan(config, [9]) == [Window(0, 2, 0), Window(2, 7, 2), Window(7, 9, 3)]


@given(CONFIGS, st.lists(st.integers(0, 50), max_size=20))
def test_decoding_by_windows_gives_what_decoding_at_once_gives(
        config: ChunkingConfig, pushes: list[int]) -> None:
    """A decoder that looks ``reach`` frames back, over frames 0, 1, 2, ...: sums of what it sees."""
    reach = config.codec_left_context_frames

    def decode(frames: list[int]) -> list[int]:
        return [sum(frames[max(0, i - reach):i + 1]) for i in range(len(frames))]

    total = sum(pushes)
    pieces = [decode(list(range(w.start - w.left_context, w.end)))[w.left_context:]
              for w in plan(config, pushes)]
    assert [n for piece in pieces for n in piece] == decode(list(range(total)))


def test_frames_after_the_end_are_refused() -> None:
    planner = ChunkPlanner(ChunkingConfig())
    planner.finish()
    with pytest.raises(ValueError, match="finished"):
        planner.push(1)
