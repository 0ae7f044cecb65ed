from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Fence, ReplyAudio, TextSpan, Unit
from duologue.engine.messages import AppendUnit, CodecFrames, Open
from duologue.engine.wire import Decoder, FromStage, Ready, Taken, ToHub, ToStage, ToWorker, encode, session_of

FENCE = Fence("s", 1, 2, 3)
AUDIO = FromStage("codec", 1, ReplyAudio(FENCE, 7, np.arange(50, dtype=np.int16), (TextSpan(0, 1, 2, 3),), True))
MESSAGES: list[ToWorker | ToHub] = [
    Ready({}), Taken("talker", 1, "s", 2), AUDIO,
    ToStage("thinker", 4, AppendUnit("s", 0, Unit(0, np.zeros(0, np.int16), 0.5))),
    ToStage("codec", 4, CodecFrames(FENCE, np.ones((3, 2), np.float32)))]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40))
def test_messages_survive_any_cut_of_the_stream(cuts: list[int]) -> None:
    stream = b"".join(encode(message) for message in MESSAGES)
    decoder, got, at = Decoder(), list[ToWorker | ToHub](), 0
    for cut in [*cuts, len(stream)]:
        got += decoder.feed(stream[at:at + cut])
        at += cut
    assert [type(message) for message in got] == [type(message) for message in MESSAGES]
    assert got[:2] == MESSAGES[:2]
    frames = got[4]
    assert isinstance(frames, ToStage)
    assert isinstance(frames.message, CodecFrames)
    np.testing.assert_array_equal(frames.message.frames, np.ones((3, 2), np.float32))


def test_audio_arrives_as_it_was_and_can_be_written_to() -> None:
    (got,) = Decoder().feed(encode(AUDIO))
    assert isinstance(got, FromStage)
    assert isinstance(got.message, ReplyAudio)
    assert (got.message.fence, got.message.spans, got.message.last) == (FENCE, (TextSpan(0, 1, 2, 3),), True)
    np.testing.assert_array_equal(got.message.pcm, np.arange(50, dtype=np.int16))
    got.message.pcm[0] = 1


def test_audio_is_not_copied_into_the_pickle() -> None:
    pcm = np.full(100_000, 0x5A5A, np.int16)
    data = encode(FromStage("codec", 1, ReplyAudio(FENCE, 0, pcm)))
    assert data.endswith(pcm.tobytes())
    assert data.count(b"ZZZZZZZZ" * 100) * 800 <= pcm.nbytes


def test_the_session_of_a_message_is_found_in_it_or_in_its_fence() -> None:
    assert session_of(AUDIO.message) == session_of(Open("s", 0, 0, 0)) == "s"
