"""Who has the floor over a reply, by a thinker whose answers are set: when its word is taken."""

from __future__ import annotations

from typing import cast

import pytest

from duologue.engine.models.embedded.overlap import Verdict
from duologue.engine.models.embedded.thinking.format import Answer, Heard
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.thinking.turns import Considered
from duologue.engine.models.embedded.utterance import Utterance
from tests.engine.models.embedded.scripted_ear import whole

UNIT_MS = 80
KEEPS, YIELDS = Answer(speaks=True), Answer()


class Thinker:
    """Lets whatever is said take the floor until ``nod_ms`` of silence are behind it."""

    def __init__(self, nod_ms: int) -> None:
        self.nod_ms = nod_ms

    def ask(self, heard: Heard) -> Answer:
        return KEEPS if heard.silent_ms >= self.nod_ms else YIELDS

    def kept(self, heard: Heard) -> None:
        """Forget it: no later answer depends on it."""


def over(text: str, *, silent_ms: int = 0, settled: bool = True, ended: bool = False) -> Utterance:
    return Utterance(0, 0, over_reply=True, last_speech=4, unit_ms=UNIT_MS, understanding=whole(text), settled=settled,
                     ended=ended, spoken_units=5, silent_units=silent_ms // UNIT_MS)


def verdict(utterance: Utterance, nod_ms: int = 10_000) -> Verdict:
    return Considered(cast(Record, Thinker(nod_ms))).judge(utterance, adapted=True)


@pytest.mark.parametrize("text", ["by she", "bicycles", "what time"])
def test_a_word_or_two_that_no_grammar_knows_take_the_floor_behind_a_silence(text: str) -> None:
    found = [verdict(over(text, silent_ms=ms)) for ms in (0, 80, 160, 240)]
    assert found == [Verdict.UNDECIDED, Verdict.UNDECIDED, Verdict.TAKES, Verdict.TAKES]


def test_a_nod_that_is_misheard_while_it_is_said_leaves_the_reply_the_floor() -> None:
    assert [verdict(over("by she", silent_ms=ms), nod_ms=160) for ms in (0, 80, 160)] == [Verdict.UNDECIDED] * 3
    assert verdict(over("by she", silent_ms=480, ended=True), nod_ms=160) is Verdict.KEEPS


@pytest.mark.parametrize("text", ["what time is", "hold on", "stop", "help"])
def test_what_the_grammar_knows_and_three_words_take_it_while_they_are_said(text: str) -> None:
    assert verdict(over(text)) is Verdict.TAKES


def test_a_first_word_that_may_still_change_takes_nothing() -> None:
    assert verdict(over("help", settled=False)) is Verdict.UNDECIDED
    assert verdict(over("what time is", settled=False)) is Verdict.TAKES
