"""The shipped weights: what the trained thinker makes of a call, typed and spoken."""

from __future__ import annotations

import pytest

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.thinker import Thinker, create
from tests.engine.models.embedded.caller import PIPELINE, Caller, speech, understood

pytestmark = pytest.mark.component


@pytest.fixture(scope="module")
def stage() -> Thinker:
    return create({"wit": "trained", "warm_recognisers": 1, "max_recognisers": 1}, PIPELINE)


def test_typed_requests_reach_their_skills(stage: Thinker) -> None:
    caller = Caller(stage, "typed")
    caller.until_quiet()
    assert caller.ask("What's 7*6?") == "Seven times six is forty two."
    assert caller.ask("convert five miles to kilometers").startswith("Five miles are about eight")
    assert caller.ask("roll two dice").startswith("You rolled")
    assert "People" in caller.ask("who made you")
    assert caller.ask("what is the capital of france").startswith("Sorry")
    caller.hang_up()


def test_spoken_requests_are_answered_once_the_caller_is_silent(stage: Thinker) -> None:
    caller = Caller(stage, "spoken")
    caller.until_quiet()
    caller.say(speech("kal16", "what is seven plus five"))
    outputs = caller.until_quiet()
    assert understood(outputs) == ["what is seven plus five"]
    assert list(caller.texts.values())[-1] == "Seven plus five is twelve."
    caller.hang_up()


def test_a_lone_stop_silences_a_reply_and_a_nod_does_not(stage: Thinker) -> None:
    caller = Caller(stage, "stop")
    caller.until_quiet()
    caller.say(speech("slt", "count to fifty"))
    caller.silence(40)
    caller.say(speech("slt", "uh huh"))
    caller.silence(12)
    assert not any(decision.yields for decision in caller.decisions)
    caller.say(speech("slt", "stop"))
    caller.silence(12)
    assert any(decision.yields for decision in caller.decisions)
    assert caller.texts[max(caller.cut)].startswith("One, two")
    caller.hang_up()


def test_no_skill_is_called_with_words_that_nobody_said(stage: Thinker) -> None:
    caller = Caller(stage, "rare")
    caller.until_quiet()
    for word in ("elephant", "zygote", "thoroughfare"):
        spelled = caller.ask(f"spell {word}")
        assert spelled.startswith(("Sorry", word.capitalize())), spelled
    caller.hang_up()


def test_an_unfinished_sentence_is_waited_for_and_then_asked_back_for(stage: Thinker) -> None:
    caller = Caller(stage, "unfinished")
    caller.until_quiet()
    caller.say(speech("slt", "remind me to"))
    before = len(caller.texts)
    caller.silence(8)
    assert len(caller.texts) == before
    caller.until_quiet()
    assert list(caller.texts.values())[-1] == "What shall I remind you of?"
    caller.hang_up()


def test_one_session_that_ends_leaves_the_others_their_sequence(stage: Thinker) -> None:
    first, second = Caller(stage, "first"), Caller(stage, "second")
    first.until_quiet()
    second.until_quiet()
    assert first.ask("what is two plus two") == "Two plus two is four."
    first.hang_up()
    assert second.ask("what is two plus three") == "Two plus three is five."
    second.hang_up()


def test_a_folder_without_weights_is_named() -> None:
    with pytest.raises(ConfigError, match="tokenizer"):
        create({"wit": "trained", "decoder": {"checkpoint": "nowhere"}}, PIPELINE)
