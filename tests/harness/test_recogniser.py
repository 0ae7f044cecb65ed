"""Calibration of the independent ear on voices of known words."""

import numpy as np
import pytest

from tests.harness.answers import number_in
from tests.harness.microphone import speak
from tests.harness.recogniser import counted, counted_up, number_words, text
from tests.harness.sound import RATE

pytestmark = pytest.mark.component

UP_TO_TEN = "one, two, three, four, five, six, seven, eight, nine, ten."


@pytest.mark.parametrize("voice", ["rms", "slt"])
def test_counting_is_heard_in_order_and_a_count_cut_short_ends_with_the_last_number(voice: str) -> None:
    whole = speak(UP_TO_TEN, voice)
    numbers = counted(whole)
    assert [number for number, _ in numbers] == list(range(1, 11))
    fifth = numbers[4][1]
    cut = counted(whole[: fifth.end])
    assert [number for number, _ in cut] == [1, 2, 3, 4, 5]
    assert abs(cut[-1][1].end - fifth.end) < RATE // 5


def test_what_sounds_like_a_number_after_a_count_is_none_of_it() -> None:
    quiet = np.zeros(RATE // 2, np.float32)
    sound = np.concatenate([speak("one, two, three, four.", "rms"), quiet, speak("two", "rms"), quiet])
    assert counted_up(sound) == [1, 2, 3, 4]


def test_two_words_said_in_one_breath_are_one_number() -> None:
    quiet = np.zeros(RATE // 2, np.float32)
    words = ["twenty", "twenty one", "twenty two"]
    sound = np.concatenate([piece for word in words for piece in (speak(word, "rms"), quiet)])
    assert [number for number, _ in counted(sound)] == [20, 21, 22]


@pytest.mark.parametrize("voice", ["rms", "slt"])
@pytest.mark.parametrize("answer", [("seven plus five is twelve", 12), ("that is forty two", 42),
                                    ("the last number i said was nine", 9)])
def test_the_number_in_an_answer_is_heard(voice: str, answer: tuple[str, int]) -> None:
    assert number_in(speak(answer[0], voice)) == answer[1]


def test_nothing_is_heard_in_silence() -> None:
    quiet = np.zeros(RATE, np.float32)
    assert text(quiet) == ""
    assert number_in(quiet) is None


def test_the_free_model_hears_a_sentence_nobody_told_it() -> None:
    sentence = "there was a fox who lived at the edge of the forest"
    assert text(speak(sentence, "rms")) == sentence


def test_numbers_in_a_text_are_read_as_said() -> None:
    assert number_words(["it", "was", "twenty", "one", "then", "7", "and", "one", "hundred"]) == [21, 7, 100]
    assert number_words(["two", "ten"]) == [2, 10]
