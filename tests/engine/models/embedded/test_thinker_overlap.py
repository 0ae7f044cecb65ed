"""Speech over a reply: who takes the floor, and who only nods."""

from __future__ import annotations

import pytest

from duologue.engine.models.embedded.agreement import Understanding
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.policy import Sentence, Trust
from duologue.engine.models.embedded.overlap import LONG_MS, Verdict, judge


def understood(words: str, trust: Trust = Trust.WHOLE) -> Understanding:
    return Understanding(Sentence(words, trust), grammar().read(words.split() if trust is Trust.WHOLE else ()))


@pytest.mark.parametrize("words", ["okay", "uh-huh", "yeah", "right", "mm", "okay eight", "uh heads", "yeah i"])
def test_a_nod_keeps_the_floor_even_if_its_breath_is_heard_as_a_word(words: str) -> None:
    for trust in (Trust.WHOLE, Trust.NONE):
        speech = understood(words, trust)
        assert judge(speech, 400, over=False, settled=True) is Verdict.UNDECIDED
        assert judge(speech, 400, over=True, settled=True) is Verdict.KEEPS


@pytest.mark.parametrize("words", ["stop", "wait", "hold on", "okay stop", "that's enough"])
def test_stop_takes_the_floor_before_it_has_settled(words: str) -> None:
    assert judge(understood(words), 300, over=False, settled=False) is Verdict.TAKES


@pytest.mark.parametrize("words", ["what time is it", "count to twenty", "okay what time is it"])
def test_a_request_takes_the_floor_as_soon_as_it_is_sure(words: str) -> None:
    assert judge(understood(words), 600, over=False, settled=True) is Verdict.TAKES


def test_long_speech_takes_the_floor_whatever_it_says() -> None:
    speech = understood("gold bananas fly", Trust.NONE)
    assert judge(speech, LONG_MS - 100, over=False, settled=True) is Verdict.UNDECIDED
    assert judge(speech, LONG_MS, over=False, settled=True) is Verdict.TAKES


def test_a_short_sound_that_was_not_understood_keeps_the_floor() -> None:
    assert judge(understood("gold", Trust.NONE), 300, over=True, settled=True) is Verdict.KEEPS
    assert judge(understood("", Trust.NONE), 300, over=True, settled=True) is Verdict.KEEPS
