from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.messages import AgentSaid, CallerSaid
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.memory import Said
from duologue.engine.models.embedded.dialogue.policy import typed
from duologue.engine.models.embedded.dialogue.recall import last_number, rest_of
from duologue.engine.models.embedded.dialogue.stories import STORIES

NOW = datetime(2026, 11, 21, 14, 5)
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten."


def fresh() -> Dialogue:
    return Dialogue("test", "Hello, this is Duologue.")


def say(dialogue: Dialogue, turn: int, text: str) -> str:
    answer = dialogue.answer(typed(text), turn, NOW, 0.0)
    return answer.text if answer else ""


@pytest.mark.parametrize(("text", "number"), [
    ("One, two, three,", "three"), ("Seven times six is forty two.", "forty two"), ("Hello.", None),
    ("twenty five, twenty six", "twenty six"), ("It is minus three point five.", "minus three point five"),
    ("a lamp and a boat", None), ("You rolled 4 and 12.", "twelve"),
    ("one hundred and five, one hundred and", "one hundred"),
])
def test_the_last_number_of_a_text(text: str, number: str | None) -> None:
    assert last_number(text) == number


def test_only_what_was_heard_counts_as_said() -> None:
    dialogue = fresh()
    say(dialogue, 1, "count to ten")
    dialogue.cut(1, "One, two, three, four,")
    say(dialogue, 2, "stop")
    assert say(dialogue, 3, "what was the last number you said") == "The last number I said was four."


def test_a_reply_of_which_nothing_was_heard_was_not_said() -> None:
    dialogue = fresh()
    dialogue.greet(0)
    say(dialogue, 1, "count to ten")
    dialogue.cut(1, "")
    assert say(dialogue, 2, "what was the last thing you said") == "The last thing I said was: Hello, this is Duologue."
    assert say(dialogue, 3, "what was the last number you said") == "I have not said any number yet."


@settings(deadline=None)
@given(st.integers(0, 10))
def test_a_cut_count_goes_on_with_the_next_number(words: int) -> None:
    dialogue = fresh()
    assert say(dialogue, 1, "count to ten") == COUNT
    heard = " ".join(COUNT.split()[:words])
    dialogue.cut(1, heard)
    rest = say(dialogue, 2, "go on")
    if words == 10:
        assert rest == "There is nothing to go on with. Shall I tell you a story?"
    else:
        assert f"{heard} {rest}".lower().split() == COUNT.lower().split()


def test_a_story_goes_on_with_the_sentence_that_was_cut() -> None:
    heard = STORIES[0][:STORIES[0].index("The fishermen laughed") + len("The fishermen laughed")]
    assert rest_of(Said(1, STORIES[0], heard, "story")).startswith("The fishermen laughed at her")


def test_a_story_cut_late_in_a_sentence_goes_on_where_it_was_cut() -> None:
    cut = "she lit the lamp ten minutes"
    heard = STORIES[0][:STORIES[0].index(cut) + len(cut)]
    assert rest_of(Said(1, STORIES[0], heard, "story")).startswith("after everybody else")


def test_a_story_can_be_cut_and_gone_on_with_twice() -> None:
    dialogue = fresh()
    story = say(dialogue, 1, "tell me a story")
    first = story[:story.index(" Every evening")]
    dialogue.cut(1, first)
    say(dialogue, 2, "what time is it")
    rest = say(dialogue, 3, "go on")
    assert rest.startswith("Every evening")
    dialogue.cut(3, rest[:rest.index(" The fishermen")])
    assert say(dialogue, 4, "continue").startswith("The fishermen")
    assert say(dialogue, 5, "go on") == "That was the end of the story. Would you like another one?"


def test_again_repeats_the_last_reply() -> None:
    dialogue = fresh()
    first = say(dialogue, 1, "what is seven times six")
    assert say(dialogue, 2, "say that again") == first


def test_what_the_caller_said_is_remembered() -> None:
    dialogue = fresh()
    assert say(dialogue, 1, "what did i say") == "You have not said anything before."
    say(dialogue, 2, "what time is it")
    assert say(dialogue, 3, "what did i say") == "You said: what time is it."


def test_a_reply_taken_back_leaves_no_trace() -> None:
    dialogue = fresh()
    dialogue.greet(0)
    before = dialogue.memory
    say(dialogue, 1, "remind me to stretch in ten seconds")
    say(dialogue, 2, "tell me a story")
    assert dialogue.take_back(2) == typed("tell me a story")
    assert dialogue.take_back(1) == typed("remind me to stretch in ten seconds")
    assert dialogue.memory == before
    assert dialogue.take_back(1) is None


# --- rebuilding ---------------------------------------------------------------------------------------------


def test_a_rebuilt_dialogue_remembers_what_the_first_one_did() -> None:
    first = fresh()
    texts = ["my name is peter", "remind me to stretch in ten minutes", "roll two dice", "tell me a story", "slower"]
    history: list[CallerSaid | AgentSaid] = [AgentSaid(0, "Hello, this is Duologue.")]
    first.greet(0)
    for turn, text in enumerate(texts, 1):
        history += [CallerSaid(text), AgentSaid(turn, say(first, turn, text))]
    second = fresh()
    assert second.rebuild(history, NOW, 0.0) == (None, None)
    assert second.memory == first.memory


def test_a_cut_reply_can_be_gone_on_with_after_a_rebuild() -> None:
    dialogue = fresh()
    dialogue.rebuild([CallerSaid("count to ten"), AgentSaid(1, "One, two, three,"), CallerSaid("stop"),
                      AgentSaid(2, "Okay.")], NOW, 0.0)
    assert say(dialogue, 3, "what was the last number you said") == "The last number I said was three."
    assert say(dialogue, 4, "go on") == "Four, five, six, seven, eight, nine, ten."


def test_an_open_reply_is_gone_on_with_where_its_text_ends() -> None:
    dialogue = fresh()
    continuation, waiting = dialogue.rebuild(
        [CallerSaid("count to ten"), AgentSaid(1, "One, two, three, ", open=True), CallerSaid("mm-hm")], NOW, 0.0)
    assert continuation is not None
    assert (continuation.turn, continuation.answer.text, continuation.written) == (1, COUNT, 17)
    assert waiting is None


def test_an_open_reply_that_cannot_be_made_again_ends_where_it_is() -> None:
    dialogue = fresh()
    continuation, _ = dialogue.rebuild([CallerSaid("what time is it"), AgentSaid(1, "It is nine ", open=True)],
                                       NOW, 0.0)
    assert continuation is not None
    assert continuation.answer.text == "It is nine "
    assert continuation.written == len("It is nine ")


def test_a_sentence_without_an_answer_still_waits_for_one() -> None:
    continuation, waiting = fresh().rebuild([CallerSaid("what time is it")], NOW, 0.0)
    assert continuation is None
    assert waiting == typed("what time is it")


def test_a_reminder_that_was_said_is_not_said_again() -> None:
    dialogue = fresh()
    dialogue.rebuild([CallerSaid("remind me to stretch in ten seconds"),
                      AgentSaid(1, "Okay, in ten seconds I will remind you to stretch."),
                      AgentSaid(2, "This is your reminder: stretch.")], NOW, 0.0)
    assert dialogue.due(1e6) is None
