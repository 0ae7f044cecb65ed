"""The trained thinker's sequence: what was heard and said stands in it, questions do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.thinking.format import MAX_TOLD, Answer, Call, Format, Heard
from duologue.engine.models.embedded.thinking.model import Model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.runners.base import Tokens
from duologue.engine.runners.window import WindowConfig
from tests.engine.models.embedded.thinking.oracle import REFUSAL, Oracle, vocabulary

FORM = Format(vocabulary())
TIME = Heard(("what", "time", "is", "it"), 160)


class Talk:
    def __init__(self, window: WindowConfig | None = None) -> None:
        self.runner = Oracle(FORM)
        self.model = Model(self.runner, FORM, window or WindowConfig(high=2000, low=1000), self.runner.table)
        self.record = Record(self.model, "s")

    @property
    def sequence(self) -> str:
        pieces = self.model.sessions.sequence("s")
        return " ".join(FORM.vocabulary.name(id) for piece in pieces if isinstance(piece, Tokens) for id in piece.ids)


def test_a_question_adds_nothing_to_the_sequence() -> None:
    talk = Talk()
    before = talk.sequence
    assert talk.record.ask(TIME).call == Call("time", {})
    assert talk.sequence == before == "<bos>"


def test_a_question_asked_again_is_not_put_again() -> None:
    talk = Talk()
    for silent in (160, 200, 239):
        talk.record.ask(Heard(TIME.words, silent))
    assert talk.runner.asked == 1
    talk.record.ask(Heard(TIME.words, 240))
    assert talk.runner.asked == 2
    talk.record.listened(TIME)
    talk.record.ask(Heard(TIME.words, 240))
    assert talk.runner.asked == 3


def test_a_reply_stands_behind_what_it_answers() -> None:
    talk = Talk()
    talk.record.replied(0, None, None, "Hi.")
    talk.record.replied(1, Heard(("time",), 160), Call("time", {}), "One.")
    assert talk.sequence == ("<bos> <unit> <|speak|> H ##i . <|turn_eos|> <|chunk_eos|> </unit> "
                             "<unit> t ##i ##m ##e <pause_160> "
                             "<|speak|> <call:time> </call> O ##n ##e . <|turn_eos|> <|chunk_eos|> </unit>")


def test_of_a_cut_reply_what_was_heard_stays() -> None:
    talk = Talk()
    talk.record.replied(0, None, None, "Hi there.")
    talk.record.cut(0, "Hi")
    assert talk.sequence == "<bos> <unit> <|speak|> H ##i <cut> <|chunk_eos|> </unit>"


def test_a_reply_that_is_undone_takes_with_it_what_it_answers_and_what_came_after() -> None:
    talk = Talk()
    talk.record.replied(0, None, None, "Hi.")
    before = talk.sequence
    talk.record.replied(1, TIME, Call("time", {}), "One.")
    talk.record.listened(TIME)
    talk.record.replied(2, TIME, Call("time", {}), "Two.")
    talk.record.undo(1)
    assert talk.sequence == before
    talk.record.undo(2)
    assert talk.sequence == before


def test_a_slot_is_a_piece_of_what_was_said_since_the_last_call() -> None:
    talk = Talk()
    talk.record.replied(0, Heard(("count", "to", "ten"), 240), Call("count", {"stop": "ten"}), "One, two.")
    talk.record.replied(1, None, None, "Hi.")
    talk.record.listened(Heard(("square", "a"), 960))
    talk.record.ask(Heard(("hundred",), 240))
    assert talk.runner.texts == ["square a hundred"]
    talk.record.undo(1)
    talk.record.ask(Heard(("by", "2\u20ac", "twos"), 240))
    assert talk.runner.texts == ["by twos"]


def test_a_slot_has_words_of_the_last_call_where_it_cannot_do_without() -> None:
    talk = Talk()
    talk.record.replied(0, Heard(("count", "to", "ten"), 240), Call("count", {"stop": "ten"}), "One, two.")
    talk.runner.likely = 0.9
    talk.record.ask(Heard(("count", "to", "nine"), 240))
    assert (talk.runner.asked, talk.runner.texts) == (1, ["count to nine"])
    talk.runner.likely = 0.05
    before = talk.sequence
    talk.record.ask(Heard(("count", "to", "six"), 240))
    assert (talk.runner.asked, talk.runner.texts) == (3, ["count to ten count to six", "ten"])
    assert talk.sequence == before


def test_a_long_tale_stays_by_its_beginning_only() -> None:
    talk = Talk()
    talk.record.replied(0, None, Call("story", {}), "once upon a time " * 50)
    assert len(talk.sequence.split()) == 1 + 1 + 3 + MAX_TOLD + 3


def test_a_session_whose_runner_fails_says_so() -> None:
    talk = Talk()
    talk.runner.fails = True
    with pytest.raises(RuntimeError, match="told to fail"):
        talk.record.ask(TIME)


def test_one_that_talks_for_hours_lets_its_oldest_turns_go() -> None:
    talk = Talk(WindowConfig(high=400, low=200))
    for turn in range(100):
        assert talk.record.ask(TIME).call == Call("time", {})
        talk.record.replied(turn, TIME, Call("time", {}), "One.")
    assert len(talk.sequence.split()) <= 400
    talk.record.cut(0, "")
    talk.record.undo(98)
    assert talk.record.ask(TIME).call == Call("time", {})


WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz'", min_size=1, max_size=9), min_size=1, max_size=6).map(tuple)


SLOTS = st.dictionaries(st.sampled_from(["source", "number", "text"]), WORDS)


@given(st.sampled_from(["convert", "time", "repeat"]), SLOTS)
def test_a_call_reads_back_as_it_was_written(name: str, slots: dict[str, tuple[str, ...]]) -> None:
    call = Call(name, {slot: " ".join(words) for slot, words in slots.items()})
    assert FORM.read(FORM.calling(call)).call == call


@given(st.lists(st.integers(0, len(FORM.vocabulary) - 1), max_size=40))
def test_whatever_tokens_come_they_are_an_answer(tokens: list[int]) -> None:
    answer = FORM.read(tokens)
    assert isinstance(answer, Answer)
    assert answer.speaks or (not answer.text and answer.call is None)


@given(WORDS)
def test_words_are_read_as_they_were_written(words: tuple[str, ...]) -> None:
    assert FORM.vocabulary.decode(FORM.vocabulary.encode(" ".join(words))) == " ".join(words)


def test_what_the_thinker_says_itself_is_its_text() -> None:
    answer = FORM.read(FORM.told(None, REFUSAL))
    assert (answer.text, answer.whole, answer.call) == (REFUSAL, True, None)
    assert FORM.read(FORM.keeping()).keeps
    assert not FORM.read(FORM.listening()).speaks
