"""The codec stage with a decoder whose samples are the numbers of its frames."""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import ChunkingConfig
from duologue.engine.messages import CodecFrames, Fence, Hold, Interrupt, Open, Pcm, ReplyAudio, TextSpan
from duologue.engine.models.codec_stage import Chunk, CodecStage, Frames

RATE = 1000
FRAME_SAMPLES = 40


class Clock:
    def __init__(self) -> None:
        self.now = 1.0

    def __call__(self) -> float:
        return self.now


class Counting:
    """Decodes frame n to samples n; ``cost_s`` passes on the clock for each call."""

    frame_samples = FRAME_SAMPLES
    sample_rate = RATE
    delay_samples = 0
    most_chunks = 4

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.cost_s = 0.001
        self.calls: list[int] = []

    def begin(self, fence: Fence, voice: str) -> None:
        return None

    def check(self, frames: Frames) -> Frames:
        return frames

    def decode(self, chunks: Sequence[Chunk[None]]) -> list[Pcm]:
        self._clock.now += self.cost_s
        self.calls.append(len(chunks))
        return [np.repeat(chunk.frames[chunk.left_context:, 0].astype(np.int16), FRAME_SAMPLES) for chunk in chunks]


def stage(chunking: ChunkingConfig, *sessions: str) -> tuple[CodecStage[None], Counting, Clock]:
    clock = Clock()
    decoder = Counting(clock)
    made = CodecStage(decoder, chunking, clock)
    for session in sessions:
        made.receive(Open(session, epoch=0, next_turn=0, next_unit=0))
    return made, decoder, clock


def frames(first: int, count: int, *, last: bool = False, session: str = "a",
           spans: tuple[TextSpan, ...] = ()) -> CodecFrames:
    numbers = np.arange(first, first + count, dtype=np.int32)[:, None]
    return CodecFrames(Fence(session, 0, 0, 0), numbers, spans, last)


def audio(codec: CodecStage[Any]) -> list[ReplyAudio]:
    out: list[ReplyAudio] = []
    while codec.ready:
        out += [chunk for chunk in codec.step() if isinstance(chunk, ReplyAudio)]
    return out


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.floats(0, 1)), max_size=12), st.booleans(), st.integers(0, 12))
def test_every_frame_is_heard_once_in_order_and_exactly_one_chunk_is_the_last(
        pushes: list[tuple[int, float]], ramp: bool, context: int) -> None:
    codec, _, clock = stage(ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=7,
                                           codec_left_context_frames=context, codec_chunk_ramp=ramp), "a")
    out, sent = [], 0
    for count, wait in pushes:
        codec.receive(frames(sent, count))
        sent += count
        out += audio(codec)
        clock.now += wait
        out += audio(codec)
    codec.receive(frames(sent, 0, last=True))
    out += audio(codec)
    heard = np.concatenate([chunk.pcm for chunk in out])
    assert np.array_equal(heard, np.repeat(np.arange(sent), FRAME_SAMPLES))
    assert [chunk.last for chunk in out] == [False] * (len(out) - 1) + [True]
    assert [chunk.fence.seq for chunk in out] == list(range(len(out)))
    assert [chunk.first_sample for chunk in out] == [0, *np.cumsum([len(chunk.pcm) for chunk in out])[:-1]]
    codec.close()


def test_frames_that_wait_for_more_are_decoded_before_playback_reaches_them() -> None:
    codec, _, clock = stage(ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=10), "a")
    codec.receive(frames(0, 2))
    assert len(audio(codec)) == 1
    ends = clock.now + 2 * FRAME_SAMPLES / RATE
    codec.receive(frames(2, 1))
    assert not codec.ready
    clock.now = ends - 0.01
    assert codec.ready
    assert [len(chunk.pcm) for chunk in audio(codec)] == [FRAME_SAMPLES]
    assert clock.now < ends
    codec.close()


def test_the_stage_wakes_by_itself_for_frames_that_wait() -> None:
    """The stage's clock stands still at a time that the alarm's has long passed."""
    codec, _, _ = stage(ChunkingConfig(initial_codec_chunk_frames=2, codec_chunk_frames=10), "a")
    codec.receive(frames(0, 2))
    audio(codec)
    assert not select.select([codec.wake_fd], [], [], 0)[0]
    codec.receive(frames(2, 1))
    assert select.select([codec.wake_fd], [], [], 10)[0]
    audio(codec)
    codec.step()
    codec.close()


def test_sessions_that_are_ready_together_are_decoded_in_one_call_and_none_waits_for_more() -> None:
    codec, decoder, _ = stage(ChunkingConfig(initial_codec_chunk_frames=2), "a", "b", "c", "d", "e", "f")
    codec.receive(frames(0, 2, session="c"))
    codec.step()
    for session in ("a", "b", "d", "e", "f"):
        codec.receive(frames(0, 2, session=session))
    audio(codec)
    assert decoder.calls == [1, 4, 1]
    codec.close()


def test_the_end_of_a_reply_is_said_though_its_frames_ended_on_a_boundary() -> None:
    codec, decoder, _ = stage(ChunkingConfig(initial_codec_chunk_frames=2), "a")
    spans = (TextSpan(0, 2, 0, 60), TextSpan(3, 5, 60, 90))
    codec.receive(frames(0, 2, spans=spans))
    first, = audio(codec)
    assert (first.spans, first.last) == (spans[:1], False)
    codec.receive(frames(2, 0, last=True))
    end, = audio(codec)
    assert (len(end.pcm), end.spans, end.last, end.first_sample) == (0, spans[1:], True, 2 * FRAME_SAMPLES)
    assert len(decoder.calls) == 1
    codec.close()


def test_a_held_session_waits_and_an_interrupted_one_says_nothing_more() -> None:
    codec, _, _ = stage(ChunkingConfig(), "a", "b")
    codec.receive(Hold("a", held=True))
    codec.receive(frames(0, 5, last=True))
    assert not codec.ready
    codec.receive(Hold("a", held=False))
    assert codec.ready
    codec.receive(Interrupt("a", epoch=1))
    assert not codec.ready
    codec.close()
