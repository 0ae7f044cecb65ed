"""The talker stage: text deltas in, codec frames with the places of words out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.config import ConfigError
from duologue.engine.messages import Close, CodecFrames, Hold, Interrupt, TextSpan
from duologue.engine.models.embedded import talker
from duologue.engine.models.embedded.reading import MAX_REPLY_CHARS
from duologue.engine.models.embedded.voice_format import FRAME_SAMPLES, FRAME_WIDTH
from duologue.metrics import DROPS
from tests.engine.models.embedded.flite_alone import flite_alone
from tests.engine.models.embedded.voice import delta, deltas, frames_of, new_talker, opened, pipeline


def spans(messages: list[CodecFrames]) -> list[TextSpan]:
    return [span for message in messages for span in message.spans]


def samples(messages: list[CodecFrames]) -> int:
    return sum(len(message.frames) for message in messages) * FRAME_SAMPLES


def words(text: str, messages: list[CodecFrames]) -> list[str]:
    return [text[span.start:span.end] for span in spans(messages)]


def speak(text: str, size: int = 1000) -> list[CodecFrames]:
    stage = new_talker("a")
    for message in deltas(text, size):
        stage.receive(message)
    return frames_of(stage)


def dropped(what: str, reason: str) -> float:
    value: float = DROPS.labels(what=what, reason=reason)._value.get()
    return value


def test_sound_begins_before_the_text_is_finished() -> None:
    stage = new_talker("a")
    stage.receive(delta("Once upon a time there"))
    frames = frames_of(stage)
    # "there" may go on, and of the words known one is kept back to see where the phrase is going.
    assert words("Once upon a time there", frames) == ["Once", "upon", "a"]
    assert samples(frames) > 0
    assert not any(message.last for message in frames)


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_every_word_has_its_place_in_text_and_sound(size: int) -> None:
    text = "Well, “42” isn't 3.14 — it is 5×8+2! Is that so? Yes, on 5/6/2026 at 3:45 p.m."
    frames = speak(text, size)
    assert words(text, frames) == ["Well", "42", "isn't", "3.14", "it", "is", "5×8+2", "Is", "that", "so", "Yes",
                                   "on", "5/6/2026", "at", "3:45", "p.m."]
    for before, after in pairwise(spans(frames)):
        assert before.first_sample < before.end_sample <= after.first_sample
    assert spans(frames)[-1].end_sample <= samples(frames)


@pytest.mark.component
def test_words_last_as_long_as_when_flite_itself_says_them(tmp_path: Path) -> None:
    text = "Seven old men and a dog."
    reference = flite_alone(text, tmp_path)
    stage = new_talker("a")
    stage.receive(delta(text[:8]))
    stage.receive(delta(text[8:], 8, last=True))
    ours = [span.end_sample - span.first_sample for span in spans(frames_of(stage))]
    theirs = [16000 * (end - start) for start, end in zip(reference.starts, reference.ends, strict=True)]
    # Six words are two phrases here, of which each knows only two or three words of the other.
    assert ours == pytest.approx(theirs, rel=0.35, abs=400)
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.1)


def test_pauses_have_the_length_their_mark_asks_for() -> None:
    for text, shortest, longest in (("Three, four.", 120, 180), ("Three. Four.", 280, 340), ("three four", 0, 5)):
        first, second = spans(speak(text))
        assert shortest <= (second.first_sample - first.end_sample) / 16 <= longest
        assert first.first_sample == 40 * 16


def test_frames_are_whole_and_numbered_and_the_last_one_says_so() -> None:
    frames = speak("One, two, three. Once upon a time there was a king in a castle on a hill. The end.", 7)
    assert [message.fence.seq for message in frames] == list(range(len(frames)))
    assert [message.last for message in frames] == [False] * (len(frames) - 1) + [True]
    for message in frames:
        assert message.frames.dtype == np.float32
        assert message.frames.shape[1:] == (FRAME_WIDTH,)


@pytest.mark.parametrize("text", ["", "  ", "☃☃☃", "...", "— “”", "日本語", "'", "\x00\x07", "*" * 500])
def test_a_reply_that_cannot_be_said_still_ends(text: str) -> None:
    frames = speak(text)
    assert frames[-1].last
    assert spans(frames) == []


def test_a_last_delta_without_text_ends_the_reply() -> None:
    stage = new_talker("a")
    stage.receive(delta("Good morning, "))
    begun = frames_of(stage)
    stage.receive(delta("", 14, last=True))
    ended = frames_of(stage)
    assert [message.last for message in begun + ended] == [False] * len(begun) + [True]
    assert words("Good morning, ", begun + ended) == ["Good", "morning"]


def test_an_interruption_drops_what_was_not_said_and_stale_text() -> None:
    stage = new_talker("a")
    stage.receive(delta("One, two, three, four, five, six, seven, eight, nine, ten, eleven. Twelve. Thirteen. "))
    stage.step()
    stage.receive(Interrupt("a", epoch=1, turn=0, heard="One"))
    assert not stage.ready
    before = dropped("reply_text", "stale")
    stage.receive(delta("fourteen, fifteen, ", 90))
    assert not stage.ready
    assert dropped("reply_text", "stale") == before + 1
    stage.receive(delta("Sorry.", epoch=1, turn=1, last=True))
    frames = frames_of(stage)
    assert words("Sorry.", frames) == ["Sorry"]
    assert {(message.fence.epoch, message.fence.turn) for message in frames} == {(1, 1)}
    assert frames[0].fence.seq == 0


def test_text_for_a_reply_that_has_ended_is_dropped() -> None:
    stage = new_talker("a")
    stage.receive(delta("Done.", last=True))
    frames_of(stage)
    stage.receive(delta("More.", 5, last=True))
    assert not stage.ready


def test_a_reply_taken_up_in_its_middle_keeps_its_places() -> None:
    text = "Once upon a time, there was a king."
    stage = new_talker("a")
    stage.receive(delta(text[18:], 18, last=True))
    frames = frames_of(stage)
    assert words(text, frames) == ["there", "was", "a", "king"]
    assert spans(frames)[0].first_sample == 640
    assert frames[0].fence.seq == 0


def test_text_that_comes_twice_is_said_once() -> None:
    text = "One, two, three."
    stage = new_talker("a")
    stage.receive(delta(text[:9]))
    stage.receive(delta(text[5:], 5, last=True))
    assert words(text, frames_of(stage)) == ["One", "two", "three"]


def test_a_slower_rate_takes_longer() -> None:
    lengths = []
    for rate in (1.0, 0.75):
        stage = new_talker("a")
        stage.receive(delta("This is a rather long sentence, is it not?", last=True, rate=rate))
        lengths.append(samples(frames_of(stage)))
    assert lengths[1] == pytest.approx(lengths[0] / 0.75, rel=0.05)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e9])
def test_an_absurd_rate_is_bounded(rate: float) -> None:
    stage = new_talker("a")
    stage.receive(delta("Hello there.", last=True, rate=rate))
    assert 16_000 // 4 < samples(frames_of(stage)) < 16_000 * 4


def test_a_very_long_text_is_said_in_bounded_phrases_and_cut_at_the_limit() -> None:
    text = "word " * (MAX_REPLY_CHARS // 5) + "beyond"
    stage = new_talker("a")
    before = dropped("reply_text", "too_long")
    stage.receive(delta(text, last=True))
    assert dropped("reply_text", "too_long") == before + 1
    first = stage.step()[0]
    assert isinstance(first, CodecFrames)
    assert len(first.spans) == 4
    second = stage.step()[0]
    assert isinstance(second, CodecFrames)
    assert len(second.spans) == 8


def test_sessions_take_turns_and_sound_as_they_do_alone() -> None:
    texts = {"a": "The old king had three daughters, and each of them wanted a horse. Which one got it?",
             "b": "One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve."}
    stage = new_talker(*texts)
    for name, text in texts.items():
        for message in deltas(text, 1000, name):
            stage.receive(message)
    together = frames_of(stage)
    order = [message.fence.session for message in together]
    assert order[:4] == ["a", "b", "a", "b"]
    for name, text in texts.items():
        alone = speak(text)
        mine = [message for message in together if message.fence.session == name]
        assert spans(mine) == spans(alone)
        assert np.array_equal(np.concatenate([message.frames for message in mine]),
                              np.concatenate([message.frames for message in alone]))


def test_replies_of_a_session_are_said_one_after_the_other() -> None:
    stage = new_talker("a")
    stage.receive(delta("First, ", turn=0))
    stage.receive(delta("Second.", turn=1, last=True))
    assert [message.fence.turn for message in frames_of(stage)] == [0]
    stage.receive(delta("now.", 7, turn=0, last=True))
    assert [message.fence.turn for message in frames_of(stage)] == [0, 1]


def test_a_held_session_waits_and_the_others_go_on() -> None:
    stage = new_talker("a", "b")
    stage.receive(Hold("a", held=True))
    stage.receive(delta("Hello.", last=True))
    assert not stage.ready
    stage.receive(delta("Hello.", session="b", last=True))
    assert {message.fence.session for message in frames_of(stage)} == {"b"}
    stage.receive(Hold("a", held=False))
    assert {message.fence.session for message in frames_of(stage)} == {"a"}


def test_a_closed_session_has_nothing_left_and_an_unknown_one_is_ignored() -> None:
    stage = new_talker("a")
    stage.receive(delta("Hello.", last=True))
    stage.receive(Close("a"))
    stage.receive(delta("Hello.", last=True))
    stage.receive(Interrupt("nobody", epoch=4))
    assert not stage.ready
    assert list(stage.step()) == []


def test_a_session_opened_again_begins_afresh() -> None:
    stage = new_talker("a")
    stage.receive(delta("Hello", last=False))
    stage.receive(opened("a", epoch=2))
    assert not stage.ready
    stage.receive(delta("Go on.", 20, epoch=2, turn=0, last=True))
    assert [(span.start, span.end) for span in spans(frames_of(stage))] == [(20, 22), (23, 25)]


@settings(max_examples=40, deadline=None)
@given(st.text(st.one_of(st.sampled_from("ab12 .,'-—%$!/:\n"), st.characters()), max_size=50), st.integers(1, 20))
def test_any_text_is_said_to_its_end(text: str, size: int) -> None:
    frames = speak(text, size)
    assert frames[-1].last
    end = 0
    for span in spans(frames):
        assert end <= span.start < span.end <= len(text)
        assert 0 <= span.first_sample < span.end_sample <= samples(frames)
        end = span.end
    assert all(np.isfinite(message.frames).all() for message in frames)


def test_a_config_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigError, match="speed"):
        talker.create({"speed": 2}, pipeline())
    with pytest.raises(ConfigError, match="16000"):
        talker.create({}, pipeline(output_rate=24_000))
