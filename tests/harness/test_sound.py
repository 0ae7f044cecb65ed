"""Offline audio: exact places in known signals."""

import numpy as np
import pytest

from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.sound import RATE, Sound, Span, end_of_sound, first_sound, locate, resample, spans


def tone(seconds: float, rate: int = RATE) -> Sound:
    return (0.3 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def quiet(seconds: float) -> Sound:
    return np.zeros(round(seconds * RATE), np.float32)


def test_spans_are_exact_to_five_milliseconds_and_short_gaps_join_them() -> None:
    sound = np.concatenate([quiet(1), tone(0.5), quiet(0.1), tone(0.4), quiet(1), tone(0.2), quiet(0.5)])
    assert spans(sound) == [Span(RATE, 2 * RATE), Span(3 * RATE, 3 * RATE + RATE // 5)]
    assert len(spans(sound, gap_ms=50)) == 3


def test_the_end_of_a_sound_is_where_the_quiet_begins() -> None:
    sound = np.concatenate([tone(1), quiet(1), tone(1)])
    assert end_of_sound(sound, RATE // 2) == RATE
    assert end_of_sound(sound, RATE + RATE // 10) == RATE + RATE // 10
    assert first_sound(sound, RATE + 1) is not None
    assert first_sound(sound[: 2 * RATE], RATE) is None


@pytest.mark.parametrize("to", [8_000, 16_000])
def test_resampling_keeps_length_and_place(to: int) -> None:
    sound = np.concatenate([quiet(0.5), tone(0.5), quiet(0.33)])
    there = resample(sound, RATE, to)
    assert there.size == sound.size * to // RATE
    back = resample(there, to, RATE)
    at, fit = locate(sound[RATE // 2 : RATE], back)
    assert fit > 0.98
    assert abs(at - RATE // 2) <= RATE // 440


def test_a_timeline_is_read_in_any_pieces() -> None:
    microphone = Microphone().pause(0.3).play(tone(0.5), "one").pause(0.2).play(tone(0.1), "two")
    whole = microphone.read(0, microphone.length + 100)
    pieces = [microphone.read(start, start + 960) for start in range(0, microphone.length, 960)]
    assert np.array_equal(np.concatenate(pieces)[: whole.size], whole[: len(pieces) * 960])
    assert spans(whole, gap_ms=100) == [utterance.span for utterance in microphone.utterances]


def test_what_was_said_is_found_in_a_recording_that_began_late_and_stumbled() -> None:
    microphone = Microphone().pause(1).say("stop").pause(1).say("what is seven plus five")
    late, stumble = RATE // 3, RATE // 4
    first, second = (utterance.span for utterance in microphone.utterances)
    mic = np.concatenate([microphone.read(late, first.end + RATE // 2), quiet(0.25),
                          microphone.read(first.end + RATE // 2, second.end)])
    found = Recording(mic, mic).said(microphone)
    assert abs(found[0].start - (first.start - late)) < 5
    assert abs(found[1].start - (second.start - late + stumble)) < 5


def test_what_was_not_said_is_not_found() -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, 3 * RATE).astype(np.float32)
    with pytest.raises(LookupError, match="'stop'"):
        Recording(noise, noise).said(Microphone().say("stop"))


def test_sounds_that_are_all_alike_are_told_apart_by_their_place() -> None:
    microphone = Microphone().pause(1)
    for _ in range(4):
        microphone.play(tone(0.05), "beep").pause(0.9)
    mic = np.concatenate([quiet(0.7), microphone.read(0, microphone.length)])
    found = Recording(mic, mic).said(microphone)
    assert [span.start for span in found] == [one.span.start + round(0.7 * RATE) for one in microphone.utterances]
