"""Calibration of the independent ear on voices of known words."""

import numpy as np
import pytest

from tests.harness.microphone import speak
from tests.harness.recogniser import counted, fit, number_words, text
from tests.harness.sound import RATE

pytestmark = pytest.mark.component

UP_TO_TWENTY = ("one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, "
                "fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty.")


@pytest.mark.parametrize("voice", ["rms", "slt"])
def test_counting_is_heard_in_order(voice: str) -> None:
    assert [number for number, _ in counted(speak(UP_TO_TWENTY, voice))] == list(range(1, 21))


def test_counting_with_long_pauses_is_heard_in_order() -> None:
    quiet = np.zeros(RATE // 2, np.float32)
    words = ["twenty", "twenty one", "twenty two", "twenty three", "twenty four"]
    sound = np.concatenate([piece for word in words for piece in (speak(word, "rms"), quiet)])
    assert [number for number, _ in counted(sound)] == [20, 21, 22, 23, 24]


def test_a_count_cut_short_ends_with_the_last_number_heard() -> None:
    whole = speak(UP_TO_TWENTY, "rms")
    eighth = counted(whole)[7][1]
    heard = counted(whole[: eighth.end])
    assert [number for number, _ in heard] == list(range(1, 9))
    assert abs(heard[-1][1].end - eighth.end) < RATE // 5


@pytest.mark.parametrize("voice", ["rms", "slt"])
@pytest.mark.parametrize("answer", ["twelve", "forty two", "nine"])
def test_a_grammar_reads_the_number_in_an_answer(voice: str, answer: str) -> None:
    words = fit(speak(f"seven plus five is {answer}", voice), "[seven plus five is] <number>")
    assert words == f"seven plus five is {answer}".split()


def test_the_free_model_hears_a_sentence_nobody_told_it() -> None:
    heard = text(speak("Once upon a time there was a fox who lived at the edge of the forest", "rms"))
    assert heard == "once upon a time there was a fox who lived at the edge of the forest"


def test_numbers_in_a_text_are_read_as_said() -> None:
    assert number_words(["it", "was", "twenty", "one", "then", "7", "and", "one", "hundred"]) == [21, 7, 100]
    assert number_words(["two", "ten"]) == [2, 10]
