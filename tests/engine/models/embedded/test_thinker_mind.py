"""One session of the thinker with a scripted ear: what it makes of utterances, cuts and time, without sound."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from duologue.engine.messages import AgentSaid, CallerSaid, CallerText, Choice, ReplyText
from duologue.engine.models.embedded.agreement import NOTHING
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.lexicon import Lexicon
from tests.engine.models.embedded.scripted_ear import EVENTS, Event, Session, growing, live, untrusted, whole

GREETING = "Hello, this is Duologue. What can I do for you?"


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon(grammar().words, 2000)


def test_a_call_begins_with_the_greeting(lexicon: Lexicon) -> None:
    session = Session(lexicon, greeting=GREETING)
    session.go(40)
    assert session.texts == {0: GREETING}
    assert session.whole == {0}


def test_without_a_greeting_it_waits(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.go(40)
    assert session.texts == {}
    assert [decision.choice for decision in session.decisions] == [Choice.LISTEN] * 40


def test_a_caller_who_speaks_first_is_not_greeted(lexicon: Lexicon) -> None:
    session = Session(lexicon, greeting=GREETING)
    session.say(growing("what time is it"))
    session.go(40)
    assert session.texts == {0: "It is two oh five in the afternoon."}


def test_a_sentence_is_answered_in_the_unit_in_which_it_ends(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("what is seven times six"))
    assert session.texts == {0: "Seven times six is forty two."}
    assert session.decisions[-1].choice is Choice.SPEAK


def test_words_come_as_they_are_understood_and_once_as_final(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("what time is it"))
    assert [words.text for words in session.words] == [
        "what", "what time", "what time is", "what time is it", "what time is it"]
    assert [words.final for words in session.words] == [False] * 4 + [True]


def test_a_long_reply_is_written_while_it_is_said(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to fifty"))
    session.go(30, audible=True)
    assert 0 < len(session.last.split()) < 25
    session.go(600, audible=True)
    assert session.last.endswith("fifty.")
    assert [session.decisions[unit].choice for unit in (40, -1)] == [Choice.SPEAK, Choice.LISTEN]


def test_a_request_over_a_reply_yields_once_and_is_answered_after_the_cut(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    written = session.last
    session.ear.script = growing("what was the last number you said")
    while not session.yields:
        session.unit(audible=True)
    session.cut(0, "One, two, three,")
    while session.ear.script:
        session.unit()
    assert len(session.yields) == 1
    assert session.texts[0].startswith(written)
    assert session.texts[1] == "The last number I said was three."
    assert session.epochs == {0: 0, 1: 1}


@pytest.mark.parametrize("text", ["yeah", "okay", "mm-hm", "right", "i see"])
def test_a_backchannel_over_a_reply_changes_nothing(text: str, lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("tell me a story"))
    session.go(20, audible=True)
    session.say(growing(text), audible=True)
    session.go(1000, audible=True)
    assert session.yields == []
    assert list(session.texts) == [0]
    assert session.whole == {0}
    assert session.words[-1].text == text


def test_an_echo_of_the_greeting_is_neither_answered_nor_shown(lexicon: Lexicon) -> None:
    session = Session(lexicon, greeting=GREETING)
    session.go(5)
    session.go(3, audible=True)
    session.say(growing("what can i do for you", untrusted), audible=True)
    session.say(growing("what can you do"), audible=True)
    session.go(20, audible=True)
    assert session.yields == []
    assert session.words == []
    assert list(session.texts) == [0]


def test_once_the_echo_canceller_has_adapted_the_agents_words_may_be_said_to_it(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("help"))
    session.go(70, audible=True)
    session.say(growing("tell me a story"), audible=True)
    assert len(session.yields) == 1


def test_if_no_cut_follows_a_yield_the_reply_is_closed_and_the_request_answered(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.say(growing("what time is it"), audible=True)
    session.go(10)
    assert session.whole == {0, 1}
    assert "fifty" not in session.texts[0]
    assert session.texts[1].startswith("It is two")
    assert session.epochs == {0: 0, 1: 0}


def test_an_answer_nobody_heard_is_given_again(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.say(growing("remind me to stretch in one minute"), audible=True)
    session.go(8)
    assert session.texts[1].startswith("Okay, in one minute")
    # The conversation had cut the count before it knew of the answer.
    session.cut(0, "One, two,")
    session.go(3)
    assert session.texts[2].startswith("Okay, in one minute")
    assert session.epochs[2] == 1
    assert len(session.dialogue.memory.reminders) == 1


def test_a_reply_cut_by_its_number_is_not_given_again(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("what time is it"))
    session.cut(0, "")
    session.go(40)
    assert list(session.texts) == [0]


def test_a_caller_who_goes_on_before_the_answer_is_heard_is_understood_as_a_whole(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to twenty"))
    session.ear.script = growing("by two")
    session.ear.script = [whole("and")] * 2 + [untrusted("five")] * 12 + [whole("by five")] * 3
    while not session.yields and session.ear.script:
        session.unit()
    session.cut(0, "")
    while session.ear.script:
        session.unit()
    session.go(10)
    assert session.texts[1] == "Five, ten, fifteen, twenty."


def test_an_interruption_the_thinker_did_not_ask_for_gives_the_caller_the_floor(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.ear.script = [untrusted("where")] * 3 + [untrusted("where can i buy one")] * 3
    session.unit(audible=True)
    session.cut(0, "One, two,")
    session.go(20)
    assert session.yields == []
    assert session.words[-1].text == "where can i buy one"
    assert session.texts[1].startswith("Sorry")


def test_typed_text_is_answered_and_takes_the_floor(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.mind.inject(CallerText("What's 7*6?"))
    session.unit()
    assert session.last == "Seven times six is forty two."
    session.go(25)
    session.mind.inject(CallerText("count to 50"))
    session.go(10)
    session.go(10, audible=True)
    session.mind.inject(CallerText("stop"))
    session.unit(audible=True)
    assert session.yields == [session.units - 1]
    session.cut(max(session.texts), "One, two,")
    session.go(2)
    assert session.last == "Okay."


def test_a_cough_is_not_answered(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say([untrusted("the")] * 2)
    session.say([NOTHING] * 9)
    session.go(20)
    assert session.texts == {}


def test_a_reminder_waits_until_the_floor_is_free(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("remind me to stretch in two seconds"))
    session.go(5)
    session.say(growing("what is two plus two") * 3)
    session.go(10, audible=True)
    assert not session.last.startswith("This is your reminder")
    session.go(15)
    assert session.last == "This is your reminder: stretch."


def test_a_reminder_nobody_heard_is_said_again(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    session.say(growing("remind me to stretch in two seconds"))
    session.go(4, audible=True)
    session.go(40)
    turn = max(session.texts)
    assert session.texts[turn] == "This is your reminder: stretch."
    session.cut(turn - 1, session.texts[turn - 1])
    session.go(40)
    assert session.texts[turn + 1] == "This is your reminder: stretch."
    session.go(200)
    assert max(session.texts) == turn + 1


def test_slower_changes_the_rate_of_what_follows(lexicon: Lexicon) -> None:
    session = Session(lexicon)
    rates = []
    for text in ("hello", "slower", "hello"):
        session.ear.script = growing(text)
        while session.ear.script:
            rates += [output.rate for output in session.unit() if isinstance(output, ReplyText)]
        session.go(20, audible=True)
        session.go(10)
    assert rates == [1.0, 0.8, 0.8]


# --- rebuilding ---------------------------------------------------------------------------------------------


def test_an_open_reply_goes_on_after_a_rebuild(lexicon: Lexicon) -> None:
    session = Session(lexicon, next_turn=1, next_unit=50, history=(
        CallerSaid("count to ten"), AgentSaid(0, "One, two, three, ", open=True)))
    session.go(60)
    assert session.last == "four, five, six, seven, eight, nine, ten."
    assert session.whole == {0}


def test_an_open_reply_that_was_whole_is_closed(lexicon: Lexicon) -> None:
    session = Session(lexicon, next_turn=1, next_unit=50, history=(
        CallerSaid("what time is it"), AgentSaid(0, "It is nine o'clock", open=True)))
    session.unit()
    assert session.texts == {0: ""}
    assert session.whole == {0}


def test_replayed_units_are_heard_but_nothing_is_said_in_answer_to_them(lexicon: Lexicon) -> None:
    session = Session(lexicon, greeting=GREETING, next_unit=0, decided=30)
    session.say(growing("what time is it"))
    session.go(29 - session.units)
    assert session.texts == {}
    assert session.words == []
    session.ear.script = growing("what day is it")
    while session.ear.script:
        session.unit()
    session.go(2)
    assert session.texts == {0: "It is Saturday."}


def test_a_sentence_the_dead_stage_did_not_answer_is_answered(lexicon: Lexicon) -> None:
    session = Session(lexicon, greeting=GREETING, next_turn=1, next_unit=9, history=(
        AgentSaid(0, GREETING), CallerSaid("what day is it")))
    session.unit()
    assert session.texts == {1: "It is Saturday."}


# --- whatever happens ---------------------------------------------------------------------------------------

@settings(deadline=None, max_examples=60)
@given(EVENTS)
def test_whatever_happens_every_unit_has_its_decision_and_replies_are_in_order(
        events: list[Event]) -> None:
    session = Session(_LEXICON, greeting=GREETING)
    live(session, events)
    session.go(2500)
    assert session.decisions[-1].choice is Choice.LISTEN
    assert session.whole >= session.current, "a reply was left open"
    assert sorted(session.texts) == list(range(len(session.texts))), "a turn number was left out"


_LEXICON = Lexicon(grammar().words, 2000)
