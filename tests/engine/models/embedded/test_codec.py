"""The codec stage: codec frames in, chunks of waveform out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from duologue.engine.config import ChunkingConfig, ConfigError
from duologue.engine.messages import Close, CodecFrames, Fence, Interrupt, ReplyAudio, TextSpan
from duologue.engine.models.codec_stage import MAX_WAITING_S
from duologue.engine.models.embedded import codec
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, FRAME_WIDTH, SAMPLE_RATE
from duologue.metrics import DROPS
from tests.engine.models.embedded.voice import audio_of, new_codec, pipeline, say

TEXT = "Hello there. One, two, three, four, five, six, seven; and so on."
SAID = say(TEXT)
FRAMES: NDArray[np.float32] = np.concatenate([message.frames for message in SAID.frames])


def frames(data: NDArray[np.float32], seq: int = 0, *, last: bool = False, session: str = "a", epoch: int = 0,
           turn: int = 0, spans: tuple[TextSpan, ...] = ()) -> CodecFrames:
    return CodecFrames(Fence(session, epoch, turn, seq), data, spans, last)


def decode(pieces: list[NDArray[np.float32]], chunking: ChunkingConfig | None = None) -> list[ReplyAudio]:
    stage = new_codec("a", chunking=chunking)
    out = []
    for i, piece in enumerate(pieces):
        stage.receive(frames(piece, i, last=i == len(pieces) - 1))
        out += audio_of(stage)
    return out


def joined(chunks: list[ReplyAudio]) -> NDArray[np.int16]:
    return np.concatenate([chunk.pcm for chunk in chunks])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 6), st.integers(1, 25), st.booleans())
def test_the_waveform_does_not_depend_on_how_frames_came_or_were_cut(
        sizes: list[int], initial: int, chunk: int, ramp: bool) -> None:
    data = FRAMES[:60]
    cuts = [int(cut) for cut in np.minimum(np.cumsum([0, *sizes]), len(data))] + [len(data)]
    pieces = [data[a:b] for a, b in pairwise(cuts)]
    chunking = ChunkingConfig(initial_codec_chunk_frames=initial, codec_chunk_frames=chunk, codec_chunk_ramp=ramp)
    assert np.array_equal(joined(decode(pieces, chunking)), joined(decode([data])))


def test_the_first_chunk_is_short_and_the_others_longer() -> None:
    chunks = decode([FRAMES[:25]], ChunkingConfig(codec_chunk_ramp=False))
    assert [len(chunk.pcm) for chunk in chunks] == [n * FRAME_SAMPLES for n in (2, 10, 10, 3)]
    assert [chunk.first_sample for chunk in chunks] == [n * FRAME_SAMPLES for n in (0, 2, 12, 22)]
    assert [chunk.fence.seq for chunk in chunks] == [0, 1, 2, 3]
    assert [chunk.last for chunk in chunks] == [False, False, False, True]


def test_two_frames_are_enough_to_begin() -> None:
    stage = new_codec("a")
    stage.receive(frames(FRAMES[:1]))
    assert not stage.ready
    stage.receive(frames(FRAMES[1:2], 1))
    assert [len(chunk.pcm) for chunk in audio_of(stage)] == [2 * FRAME_SAMPLES]


def test_a_reply_without_frames_ends_with_an_empty_chunk() -> None:
    only, = decode([np.empty((0, FRAME_WIDTH), np.float32)])
    assert (only.last, len(only.pcm), only.first_sample) == (True, 0, 0)
    *_, end = decode([FRAMES[:2], FRAMES[:0]])
    assert (end.last, len(end.pcm), end.first_sample) == (True, 0, 2 * FRAME_SAMPLES)


def test_a_word_is_reported_with_the_chunk_in_which_it_ends() -> None:
    end = 0
    reported: list[TextSpan] = []
    for chunk in SAID.audio:
        before, end = end, chunk.first_sample + len(chunk.pcm)
        for span in chunk.spans:
            assert before < span.end_sample <= end
        reported += chunk.spans
    assert reported == [span for message in SAID.frames for span in message.spans]
    assert [TEXT[span.start:span.end] for span in reported] == [
        "Hello", "there", "One", "two", "three", "four", "five", "six", "seven", "and", "so", "on"]


def test_words_are_loud_where_their_spans_are_and_pauses_are_quiet() -> None:
    def level(start: int, end: int) -> float:
        return 20 * float(np.log10(np.sqrt(np.mean((SAID.pcm[start:end] / 32768.0) ** 2)) + 1e-9))

    for span, after in pairwise(SAID.spans):
        assert level(span.first_sample, span.end_sample) > -32
        if after.first_sample - span.end_sample > 1600:
            middle = (span.end_sample + after.first_sample) // 2
            assert level(middle - 320, middle + 320) < -50


def test_the_voice_is_at_twenty_below_full_scale_and_never_clips() -> None:
    sound = say("This is how loud the voice is, when it says a rather long and ordinary sentence.").pcm / 32768.0
    power = (sound[:len(sound) // 320 * 320].reshape(-1, 320) ** 2).mean(1)
    active = power > power.max() / 1000
    assert 10 * np.log10(power[active].mean()) == pytest.approx(-20, abs=2)
    assert np.abs(sound).max() < 0.9


def test_frames_beyond_full_scale_are_clipped_not_wrapped() -> None:
    loud = FRAMES[:20].copy()
    loud.reshape(20, 8, 31)[..., 1] += 5
    pcm = joined(decode([loud])).astype(int)
    quiet = joined(decode([FRAMES[:20]])).astype(int)
    assert np.abs(pcm).max() >= 32767
    strong = np.abs(quiet) > 2000
    assert (np.sign(pcm[strong]) == np.sign(quiet[strong])).all()


def test_sessions_decoded_together_sound_as_they_do_alone() -> None:
    stage = new_codec("a", "b", "c")
    parts = {"a": FRAMES[:40], "b": FRAMES[30:51], "c": FRAMES[5:6]}
    for name, part in parts.items():
        stage.receive(frames(part, session=name, last=True))
    together = audio_of(stage)
    assert [chunk.fence.session for chunk in together[:3]] == ["a", "b", "c"]
    for name, part in parts.items():
        mine = joined([chunk for chunk in together if chunk.fence.session == name])
        assert np.array_equal(mine, joined(decode([part])))


def test_one_step_decodes_one_chunk_for_each_of_at_most_eight_sessions() -> None:
    names = [f"s{i}" for i in range(10)]
    stage = new_codec(*names)
    for name in names:
        stage.receive(frames(FRAMES[:12], session=name))
    assert [chunk.fence.session for chunk in stage.step() if isinstance(chunk, ReplyAudio)] == names[:8]
    assert [chunk.fence.session for chunk in stage.step() if isinstance(chunk, ReplyAudio)] == names[8:] + names[:6]


def test_chunks_that_are_ready_together_are_decoded_together_and_none_waits_for_more() -> None:
    stage = new_codec("a", "b", "c")
    stage.receive(frames(FRAMES[:2], session="b"))
    assert [chunk.fence.session for chunk in stage.step() if isinstance(chunk, ReplyAudio)] == ["b"]
    stage.receive(frames(FRAMES[:2], session="a"))
    stage.receive(frames(FRAMES[:1], session="c"))
    stage.receive(frames(FRAMES[:2], 1, session="b", last=True))
    together = [chunk for chunk in stage.step() if isinstance(chunk, ReplyAudio)]
    assert {chunk.fence.session: len(chunk.pcm) for chunk in together} == {
        "a": 2 * FRAME_SAMPLES, "b": 2 * FRAME_SAMPLES}


def test_frames_that_are_not_the_voices_are_refused_in_receive() -> None:
    stage = new_codec("a", "b")
    with pytest.raises(ValueError, match=str(FRAME_WIDTH)):
        stage.receive(frames(FRAMES[:2, :100]))
    stage.receive(frames(FRAMES[:2], session="b", last=True))
    assert [chunk.fence.session for chunk in audio_of(stage)] == ["b"]


def test_an_interruption_drops_what_waits_and_stale_frames() -> None:
    stage = new_codec("a")
    stage.receive(frames(FRAMES[:40]))
    stage.step()
    stage.receive(Interrupt("a", epoch=1, turn=0))
    assert not stage.ready
    before = DROPS.labels(what="codec_frames", reason="stale")._value.get()
    stage.receive(frames(FRAMES[40:50], 1))
    assert not stage.ready
    assert DROPS.labels(what="codec_frames", reason="stale")._value.get() == before + 10
    stage.receive(frames(FRAMES[:4], epoch=1, turn=1, last=True))
    chunks = audio_of(stage)
    assert chunks[0].first_sample == 0
    assert {(chunk.fence.epoch, chunk.fence.turn) for chunk in chunks} == {(1, 1)}


def test_a_turn_sounds_the_same_whatever_was_said_before_it() -> None:
    stage = new_codec("a")
    stage.receive(frames(FRAMES[:33], turn=0, last=True))
    stage.receive(frames(FRAMES[10:30], turn=1, last=True))
    second = joined([chunk for chunk in audio_of(stage) if chunk.fence.turn == 1])
    fresh = new_codec("a")
    fresh.receive(frames(FRAMES[10:30], turn=1, last=True))
    assert np.array_equal(second, joined(audio_of(fresh)))


def test_frames_for_a_reply_that_has_ended_are_dropped() -> None:
    stage = new_codec("a")
    stage.receive(frames(FRAMES[:4], last=True))
    audio_of(stage)
    stage.receive(frames(FRAMES[:4], 1, last=True))
    assert not stage.ready


def test_more_frames_than_may_wait_are_dropped_and_counted() -> None:
    stage = new_codec("a")
    before = DROPS.labels(what="codec_frames", reason="full")._value.get()
    most = round(MAX_WAITING_S * SAMPLE_RATE / FRAME_SAMPLES)
    data = np.broadcast_to(FRAMES[:1], (most + 7, FRAME_WIDTH))
    stage.receive(frames(data, last=True))
    assert DROPS.labels(what="codec_frames", reason="full")._value.get() == before + 7
    assert stage.ready


def test_a_closed_session_has_nothing_left_and_an_unknown_one_is_ignored() -> None:
    stage = new_codec("a")
    stage.receive(frames(FRAMES[:12]))
    stage.receive(Close("a"))
    stage.receive(frames(FRAMES[:12], 1))
    assert not stage.ready
    assert list(stage.step()) == []


@pytest.mark.parametrize(("options", "config", "says"), [
    ({"beta": 1}, {}, "beta"),
    ({}, {"output_rate": 48_000}, "16000"),
    ({}, {"chunking": ChunkingConfig(codec_left_context_frames=2)}, "codec_left_context_frames to 0"),
])
def test_a_config_that_cannot_work_is_refused(options: dict[str, Any], config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        codec.create(options, pipeline(**config))
