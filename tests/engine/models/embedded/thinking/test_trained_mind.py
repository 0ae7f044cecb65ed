"""One session of the thinker whose wit is trained: the mechanisms, with a thinker that knows the grammar by heart."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from duologue.engine.messages import AgentSaid, CallerSaid, CallerText, Choice, HistoryItem
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.lexicon import Lexicon
from duologue.engine.models.embedded.thinking.doubt import ASK_BACK
from duologue.engine.models.embedded.thinking.format import Call, Format
from duologue.engine.models.embedded.thinking.model import Model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.runners.base import Tokens
from duologue.engine.runners.window import WindowConfig
from tests.engine.models.embedded.scripted_ear import EVENTS, Event, Session, growing, live, untrusted
from tests.engine.models.embedded.thinking.oracle import REFUSAL, Oracle, vocabulary

GREETING = "Hello, this is Duologue."
FORM = Format(vocabulary())
LEXICON = Lexicon(grammar().words, 2000)


class Trained(Session):
    def __init__(self, *, greeting: str = "", history: tuple[HistoryItem, ...] = (), next_turn: int = 0,
                 auto: bool = True) -> None:
        self.runner = Oracle(FORM)
        self.model = Model(self.runner, FORM, WindowConfig(high=4000, low=3000), self.runner.table)
        super().__init__(LEXICON, greeting=greeting, history=history, next_turn=next_turn, auto=auto,
                         record=Record(self.model, "s"))

    @property
    def told(self) -> list[str]:
        """The session's units."""
        ids = [id for piece in self.model.sessions.sequence("s") if isinstance(piece, Tokens) for id in piece.ids]
        names = [FORM.vocabulary.name(id) for id in ids]
        starts = [i for i, name in enumerate(names) if name == "<unit>"]
        return [FORM.vocabulary.decode(ids[start:end]) + (" <cut>" if "<cut>" in names[start:end] else "")
                for start, end in zip(starts, [*starts[1:], len(ids)][:len(starts)], strict=True)]


def test_the_greeting_and_every_turn_stand_in_the_sequence() -> None:
    session = Trained(greeting=GREETING)
    session.go(40)
    session.say(growing("what is seven times six"))
    assert session.last == "Seven times six is forty two."
    assert session.told == [GREETING, "what is seven times six seven times six Seven times six is forty two."]


def test_what_is_not_answered_stands_there_too() -> None:
    session = Trained()
    session.say(growing("mm-hm"))
    assert session.texts == {}
    assert session.told == ["mm-hm"]


@pytest.mark.parametrize("text", ["yeah", "okay", "mm-hm"])
def test_a_backchannel_over_a_reply_changes_nothing(text: str) -> None:
    session = Trained()
    session.say(growing("tell me a story"))
    session.go(20, audible=True)
    session.say(growing(text), audible=True)
    session.go(1000, audible=True)
    assert session.yields == []
    assert list(session.texts) == [0]
    assert session.told[-1] == text


def test_a_request_over_a_reply_yields_once_and_the_cut_reply_stands_as_it_was_heard() -> None:
    session = Trained()
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.ear.script = growing("what was the last number you said")
    while not session.yields:
        session.unit(audible=True)
    session.cut(0, "One, two, three,")
    while session.ear.script:
        session.unit()
    assert len(session.yields) == 1
    assert session.texts[1] == "The last number I said was three."
    assert session.told[0] == "count to fifty fifty One, two, three, <cut>"
    assert session.told[1].startswith("what was the last number you said")


def test_an_answer_nobody_heard_is_given_again_and_stands_there_once() -> None:
    session = Trained()
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.say(growing("remind me to stretch in one minute"), audible=True)
    session.go(8)
    session.cut(0, "One, two,")
    session.go(3)
    assert session.texts[2].startswith("Okay, in one minute")
    assert len(session.dialogue.memory.reminders) == 1
    assert sum("remind" in unit for unit in session.told) == 1


def test_what_the_thinker_does_not_know_it_refuses_itself() -> None:
    session = Trained()
    session.say(growing("zebras cross the road", untrusted))
    session.go(10)
    assert session.last == REFUSAL


def test_typed_text_is_answered() -> None:
    session = Trained()
    session.mind.inject(CallerText("What's 7*6?"))
    session.unit()
    assert session.last == "Seven times six is forty two."


def test_in_turn_mode_it_speaks_when_it_is_asked_to() -> None:
    session = Trained(auto=False)
    session.say(growing("what time is it"))
    session.go(20)
    assert session.texts == {}
    session.mind.respond()
    session.unit()
    assert session.last == "It is two oh five in the afternoon."


def test_a_session_that_is_opened_again_has_the_same_sequence() -> None:
    session = Trained(greeting=GREETING)
    session.go(40)
    session.say(growing("what is seven times six"))
    session.go(40)
    again = Trained(greeting=GREETING, next_turn=2, history=(
        AgentSaid(0, GREETING), CallerSaid("what is seven times six"), AgentSaid(1, session.last)))
    assert again.told == session.told
    again.say(growing("plus one"))
    assert again.last == "Forty two plus one is forty three."


def test_an_open_reply_goes_on_after_it_was_opened_again() -> None:
    session = Trained(next_turn=1, history=(
        CallerSaid("count to ten"), AgentSaid(0, "One, two, three, ", open=True)))
    session.go(60)
    assert session.last == "four, five, six, seven, eight, nine, ten."


@pytest.mark.parametrize("call", [Call("count", {"stop": "zebra"}), Call("count", {}), Call("time", {"stop": "fifty"}),
                                  Call("fragment", {})])
def test_a_call_with_what_its_skill_cannot_take_is_asked_back_for(call: Call) -> None:
    session = Trained()
    session.runner.fixed = FORM.calling(call)
    session.say(growing("count to fifty"))
    session.go(30)
    assert session.last == ASK_BACK


def test_over_a_reply_the_first_words_alone_take_no_floor_before_they_have_settled() -> None:
    session = Trained()
    session.say(growing("count to fifty"))
    session.go(20, audible=True)
    session.ear.script = [untrusted("zebra crossing"), *growing("stop")]
    session.unit(audible=True)
    assert session.yields == []


@settings(deadline=None, max_examples=30)
@given(EVENTS)
def test_whatever_happens_replies_are_in_order_and_the_sequence_holds_no_other(
        events: list[Event]) -> None:
    session = Trained(greeting=GREETING)
    live(session, events)
    session.go(1500)
    assert session.decisions[-1].choice is Choice.LISTEN
    assert session.whole >= session.current, "a reply was left open"
    assert sorted(session.texts) == list(range(len(session.texts))), "a turn number was left out"
    assert session.model.sessions.mark("s") == len(session.told)
