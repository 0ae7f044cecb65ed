"""Calls to the thinker, spoken by flite's voices: what is heard, when it answers, who has the floor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest

from duologue.engine.config import ConfigError
from duologue.engine.messages import (
    AppendUnit,
    CallerSaid,
    CallerWords,
    Choice,
    Decision,
    Inject,
    ReplyText,
    Tool,
    ToolCall,
    ToolResult,
    Unit,
)
from duologue.engine.models.embedded.thinker import Thinker, create
from tests.engine.models.embedded.caller import PIPELINE, SAMPLES, Caller, speech, understood, written

NAMES = (f"call{number}" for number in count())


@pytest.fixture(scope="module", params=["rules", "trained"])
def stage(request: pytest.FixtureRequest) -> Thinker:
    return create({"wit": request.param, "greeting": "", "warm_recognisers": 1}, PIPELINE)


@pytest.fixture
def caller(stage: Thinker) -> Iterator[Caller]:
    caller = Caller(stage, next(NAMES))
    caller.silence(6)
    yield caller
    caller.hang_up()


def units_until_text(caller: Caller, most: int = 40) -> int:
    """Units of silence until a reply begins."""
    for unit in range(1, most):
        if written(caller.unit()):
            return unit
    raise AssertionError("no reply")


def yields(caller: Caller) -> list[int]:
    return [decision.unit for decision in caller.decisions if decision.yields]


# --- listening ----------------------------------------------------------------------------------------------


def test_a_spoken_question_is_answered(caller: Caller) -> None:
    outputs = caller.say(speech("slt", "what is seven times six")) + caller.silence(8)
    assert understood(outputs) == ["what is seven times six"]
    assert written(outputs) == "Seven times six is forty two."


def test_a_spoken_question_for_a_tool_calls_it_and_its_result_is_told(stage: Thinker) -> None:
    weather = Tool("get_weather", "", json.dumps({"properties": {"city": {"type": "string"}}, "required": ["city"]}))
    caller = Caller(stage, next(NAMES), tools=(weather,))
    outputs = caller.silence(6) + caller.say(speech("slt", "what is the weather in paris")) + caller.silence(12)
    (call,) = [output for output in outputs if isinstance(output, ToolCall)]
    assert (call.name, call.arguments) == ("get_weather", '{"city": "paris"}')
    assert written(outputs) == ""
    stage.receive(Inject(caller.session, 0, ToolResult(call.call, '{"sky": "clear"}')))
    assert written(caller.silence(12)) == "The sky is clear."
    caller.hang_up()


def test_words_come_while_they_are_spoken(caller: Caller) -> None:
    outputs = caller.say(speech("slt", "what was the last number you said"))
    partial = [output.text for output in outputs if isinstance(output, CallerWords)]
    assert any("the last number" in text for text in partial)


def test_a_complete_sentence_is_answered_within_four_units_of_silence(caller: Caller) -> None:
    caller.say(speech("kal16", "what time is it"))
    assert units_until_text(caller) <= 4


def test_an_incomplete_sentence_is_waited_for(caller: Caller) -> None:
    caller.say(speech("rms", "remind me to"))
    assert units_until_text(caller) >= 14


def test_a_sentence_with_a_pause_in_it_is_one_sentence(caller: Caller) -> None:
    caller.say(speech("rms", "what is seven times"))
    caller.silence(8)
    caller.say(speech("rms", "eight"))
    outputs = caller.silence(20)
    assert written(outputs) == "Seven times eight is fifty six."


def test_silence_and_noise_are_decoded_by_nobody_and_answered_by_nobody(caller: Caller) -> None:
    rng = np.random.default_rng(3)
    caller.silence(20)
    assert caller.stage._minds[caller.session]._ear.utterance is None
    caller.say((rng.normal(0, 600, 3 * SAMPLES)).astype(np.int16))
    caller.silence(30)
    assert caller.texts == {}


def test_endless_speech_is_cut_into_bounded_utterances(caller: Caller) -> None:
    long = np.concatenate([speech("slt", "my sister works at a hospital near the river")] * 9)
    caller.obeys = False
    outputs = caller.say(long)
    ended = [output for output in outputs if isinstance(output, CallerWords) and output.final]
    assert ended
    assert all(output.last_unit - output.first_unit < 19_000 // 80 for output in ended)


def test_what_is_none_of_its_sentences_is_said_not_to_be_understood(caller: Caller) -> None:
    outputs = caller.say(speech("slt", "turn on the lights in the kitchen")) + caller.until_quiet()
    assert understood(outputs) == ["turn on the lights in the kitchen"]
    assert written(outputs).startswith(("Sorry", "I cannot"))


# --- over a reply -------------------------------------------------------------------------------------------


def test_stop_stops_a_count_and_the_number_that_was_heard_is_remembered(caller: Caller) -> None:
    caller.say(speech("slt", "count to twenty"))
    caller.silence(40)
    outputs = caller.say(speech("slt", "stop")) + caller.silence(2)
    # The word is some 400 ms long: it is understood while, or just after, it is said.
    assert any(isinstance(output, Decision) and output.yields for output in outputs)
    turn, heard = next(iter(caller.cut.items()))
    caller.until_quiet()
    last = heard.rstrip(",").split()[-1]
    caller.say(speech("awb", "what was the last number you said"))
    outputs = caller.until_quiet()
    assert written(outputs) == f"The last number I said was {last}."
    assert "twenty" not in caller.texts[turn]


def test_a_new_question_over_a_story_is_answered_in_the_new_epoch(caller: Caller) -> None:
    caller.say(speech("rms", "tell me a story"))
    caller.silence(50)
    caller.say(speech("rms", "what is twelve plus thirty"))
    outputs = caller.silence(10)
    assert written(outputs) == "Twelve plus thirty is forty two."
    assert {output.fence.epoch for output in outputs if isinstance(output, ReplyText)} == {1}


@pytest.mark.parametrize(("voice", "sound", "phones"), [
    ("slt", "m hh ah m", True), ("rms", "ah hh ah", True), ("slt", "yeah", False), ("awb", "okay", False),
    ("kal16", "right", False), ("rms", "i see", False), ("kal16", "uh huh", False),
])
def test_a_backchannel_over_a_story_does_not_end_it(caller: Caller, voice: str, sound: str, phones: bool) -> None:
    caller.say(speech("slt", "tell me a story"))
    caller.silence(70)
    before = caller.texts.copy()
    caller.say(speech(voice, sound, phones=phones))
    caller.silence(60)
    assert yields(caller) == []
    assert list(caller.texts) == [0]
    assert len(caller.texts[0]) > len(before[0])
    assert caller.decisions[-1].choice is Choice.SPEAK


def test_a_cough_over_a_story_does_not_end_it(caller: Caller) -> None:
    caller.say(speech("slt", "tell me a story"))
    caller.silence(70)
    rng = np.random.default_rng(4)
    caller.say((rng.normal(0, 3000, 4 * SAMPLES) * np.hanning(4 * SAMPLES)).astype(np.int16))
    caller.silence(20)
    assert yields(caller) == []


def test_other_speech_over_a_story_takes_the_floor_when_it_goes_on(caller: Caller) -> None:
    caller.say(speech("slt", "tell me a story"))
    caller.silence(70)
    start = caller.units
    caller.say(speech("slt", "where can i buy a new bicycle in london"))
    assert len(yields(caller)) == 1
    assert yields(caller)[0] - start <= 12


def test_the_agents_own_greeting_in_the_microphone_does_not_interrupt_it() -> None:
    stage = create({"warm_recognisers": 1}, PIPELINE)
    caller = Caller(stage, "echo")
    caller.silence(6)
    caller.say((speech("rms", "this is what can i do for you") * 0.4).astype(np.int16))
    caller.silence(30)
    assert yields(caller) == []
    assert understood(caller.outputs) == []
    assert list(caller.texts) == [0]


# --- many sessions ------------------------------------------------------------------------------------------


def test_two_callers_at_once_are_heard_apart() -> None:
    stage = create({"greeting": "", "max_recognisers": 2}, PIPELINE)
    first, second = Caller(stage, "first"), Caller(stage, "second")
    first.silence(4)
    second.silence(4)
    one, two = speech("slt", "what is seven times six"), speech("kal16", "count to five")
    for start in range(0, max(len(one), len(two)) + 12 * SAMPLES, SAMPLES):
        for caller, sound in ((first, one), (second, two)):
            piece = sound[start:start + SAMPLES]
            caller.unit(np.concatenate([piece, np.zeros(SAMPLES - len(piece), np.int16)]))
    assert first.texts == {0: "Seven times six is forty two."}
    assert second.texts == {0: "One, two, three, four, five."}


def test_a_caller_who_finds_no_recogniser_is_heard_when_one_is_free() -> None:
    stage = create({"greeting": "", "max_recognisers": 1}, PIPELINE)
    first, second = Caller(stage, "first"), Caller(stage, "second")
    first.silence(4)
    second.silence(4)
    one, two = speech("slt", "repeat after me the weather is nice"), speech("kal16", "count to five")
    for start in range(0, len(one) + 40 * SAMPLES, SAMPLES):
        for caller, sound in ((first, one), (second, two)):
            piece = sound[start:start + SAMPLES]
            caller.unit(np.concatenate([piece, np.zeros(SAMPLES - len(piece), np.int16)]))
    assert first.texts == {0: "The weather is nice."}
    assert second.texts == {0: "One, two, three, four, five."}


def test_a_hang_up_in_the_middle_of_a_word_gives_the_recogniser_back() -> None:
    stage = create({"greeting": "", "max_recognisers": 1}, PIPELINE)
    first = Caller(stage, "first")
    first.say(speech("slt", "what is seven times six")[:8 * SAMPLES])
    first.hang_up()
    second = Caller(stage, "second")
    second.say(speech("slt", "what is seven times six"))
    assert written(second.silence(8)) == "Seven times six is forty two."


def test_a_fault_of_one_session_is_its_own(stage: Thinker) -> None:
    bad, good = next(NAMES), Caller(stage, next(NAMES))
    stage.receive(AppendUnit(bad, 0, Unit(0, np.zeros(SAMPLES, np.int16), 0.9)))
    caller = Caller(stage, bad)
    caller.silence(2)
    broken = Unit(caller.units, None, 0.9)  # type: ignore[arg-type]
    stage.receive(AppendUnit(bad, 0, broken))
    outputs = [output for _ in range(3) for output in stage.step()]
    assert [type(output).__name__ for output in outputs] == ["SessionFailed"]
    good.say(speech("slt", "what is seven times six"))
    assert written(good.silence(8)) == "Seven times six is forty two."


def test_a_message_for_a_session_that_is_not_open_is_ignored(stage: Thinker) -> None:
    stage.receive(AppendUnit("nobody", 0, Unit(0, np.zeros(SAMPLES, np.int16), 0.9)))
    assert not stage.ready


def test_a_rebuilt_session_hears_the_utterance_it_was_in(stage: Thinker) -> None:
    caller = Caller(stage, next(NAMES), next_unit=100, decided=112, history=(CallerSaid("mm-hm"),))
    caller.say(speech("slt", "what is seven times six"))
    assert written(caller.silence(8)) == "Seven times six is forty two."


@pytest.mark.parametrize("options", [{"greetin": "hi"}, {"max_recognisers": 0}, {"seed": "x"}])
def test_options_it_does_not_know_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        create(options, PIPELINE)
