"""The codec stage with a decoder that looks ahead: its sound is late, and begins with silence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import ChunkingConfig
from duologue.engine.messages import CodecFrames, Fence, Open, Pcm, ReplyAudio, TextSpan
from duologue.engine.models.codec_stage import Chunk, CodecStage, Frames

RATE = 1000
FRAME_SAMPLES = 40
LATE_FRAMES = 5
"""Frames after a frame that must be there before it sounds."""


@dataclass
class _Stream:
    voice: str
    frames: list[int] = field(default_factory=lambda: [-1] * LATE_FRAMES)
    sounded: int = 0
    sizes: list[int] = field(default_factory=list)


class Ahead:
    """Decodes frame n to samples n once ``LATE_FRAMES`` more are there, and gives -1s until then."""

    frame_samples = FRAME_SAMPLES
    sample_rate = RATE
    delay_samples = LATE_FRAMES * FRAME_SAMPLES
    most_chunks = 4

    def __init__(self) -> None:
        self.streams: list[_Stream] = []

    def begin(self, fence: Fence, voice: str) -> _Stream:
        self.streams.append(_Stream(voice))
        return self.streams[-1]

    def check(self, frames: Frames) -> Frames:
        return frames

    def decode(self, chunks: Sequence[Chunk[_Stream]]) -> list[Pcm]:
        return [self._decode(chunk) for chunk in chunks]

    def _decode(self, chunk: Chunk[_Stream]) -> Pcm:
        stream = chunk.state
        stream.frames += [int(frame) for frame in chunk.frames[chunk.left_context:, 0]]
        stream.sizes.append(len(chunk.frames))
        until = len(stream.frames) - (0 if chunk.last else LATE_FRAMES)
        fresh, stream.sounded = stream.frames[stream.sounded:until], until
        return np.repeat(np.array(fresh, np.int16), FRAME_SAMPLES)


def frames(first: int, count: int, *, last: bool = False, spans: tuple[TextSpan, ...] = ()) -> CodecFrames:
    return CodecFrames(Fence("a", 0, 0, 0), np.arange(first, first + count, dtype=np.int32)[:, None], spans, last)


def opened(config: ChunkingConfig) -> tuple[CodecStage[_Stream], Ahead]:
    decoder = Ahead()
    stage = CodecStage(decoder, config, lambda: 1.0)
    stage.receive(Open("a", epoch=0, next_turn=0, next_unit=0, voice="alto"))
    return stage, decoder


def audio(stage: CodecStage[_Stream]) -> list[ReplyAudio]:
    out: list[ReplyAudio] = []
    while stage.ready:
        out += [chunk for chunk in stage.step() if isinstance(chunk, ReplyAudio)]
    return out


CHUNKS = ChunkingConfig(initial_codec_chunk_frames=4, codec_chunk_frames=7)


@settings(deadline=None)
@given(st.lists(st.integers(0, 20), max_size=8), st.booleans())
def test_all_that_was_kept_back_is_heard_at_the_end_and_nothing_twice(pushes: list[int], together: bool) -> None:
    stage, decoder = opened(CHUNKS)
    out, sent = [], 0
    for i, count in enumerate(pushes):
        stage.receive(frames(sent, count, last=together and i == len(pushes) - 1))
        sent += count
        out += audio(stage)
    if not (together and pushes):
        stage.receive(frames(sent, 0, last=True))
        out += audio(stage)
    expected = [*[-1] * LATE_FRAMES, *range(sent)] if sent else []
    assert np.array_equal(np.concatenate([chunk.pcm for chunk in out]), np.repeat(expected, FRAME_SAMPLES))
    assert [chunk.last for chunk in out] == [False] * (len(out) - 1) + [True]
    assert [chunk.first_sample for chunk in out] == [0, *np.cumsum([len(chunk.pcm) for chunk in out])[:-1]]
    assert sum(len(stream.sizes) for stream in decoder.streams) == (len(out) if sent else 0)
    stage.close()


def test_the_last_window_says_that_it_is_the_last_unless_it_is_as_large_as_windows_are() -> None:
    for count, sizes in ((4 + 7 + 3, [4, 7, 3]), (4 + 7 + 7, [4, 7, 7, 0])):
        stage, decoder = opened(CHUNKS)
        stage.receive(frames(0, count, last=True))
        audio(stage)
        assert decoder.streams[0].sizes == sizes
        stage.close()


def test_spans_of_text_are_where_their_late_frames_sound() -> None:
    stage, _ = opened(CHUNKS)
    stage.receive(frames(0, 8, last=True, spans=(TextSpan(0, 2, 0, 80), TextSpan(3, 5, 80, 320))))
    spans = [span for chunk in audio(stage) for span in chunk.spans]
    late = LATE_FRAMES * FRAME_SAMPLES
    assert spans == [TextSpan(0, 2, late, 80 + late), TextSpan(3, 5, 80 + late, 320 + late)]
    stage.close()


def test_a_reply_is_begun_in_the_voice_its_session_was_opened_with() -> None:
    stage, decoder = opened(CHUNKS)
    stage.receive(frames(0, 8))
    assert [stream.voice for stream in decoder.streams] == ["alto"]
    stage.close()
