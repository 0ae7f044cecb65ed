"""What a call's dialogue remembers: only what was heard, and the same after it was rebuilt from its history."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.messages import AgentSaid, CallerSaid, HistoryItem
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.memory import KEPT, Memory
from duologue.engine.models.embedded.dialogue.policy import Answer, typed

NOW = datetime(2026, 3, 21, 14, 30)
GREETING = "Hello, this is a test. What can I do for you?"
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten."
SENTENCES = (
    "what is seven times six", "plus eight", "count to ten", "count down from nine", "tell me a story",
    "another story", "go on", "say that again", "what was the last number you said", "what did I say",
    "what was the last thing you said", "slower", "faster", "my name is Sarah", "what is my name", "roll two dice",
    "flip a coin", "tell me a joke", "yes", "okay", "no", "mm-hm", "stop", "count", "to five", "what is five times",
    "six", "remind me to stretch in one hour", "forget my reminders", "green ideas sleep", "help", "hello",
    "spell queue", "repeat after me the sea is blue",
)


@dataclass
class Life:
    """A dialogue lived through, and the record that the engine keeps of it."""

    dialogue: Dialogue = field(default_factory=lambda: Dialogue("seed", GREETING))
    history: list[HistoryItem] = field(default_factory=list)
    turn: int = 0

    def greet(self) -> None:
        answer = self.dialogue.greet(self.turn)
        assert answer is not None
        self.history.append(AgentSaid(self.turn, answer.text))
        self.turn += 1

    def live(self, words: str, heard_words: int | None = None) -> str:
        """Say ``words``; of the reply ``heard_words`` are heard, or all of it."""
        answer = self.dialogue.answer(typed(words), self.turn, NOW, 0.0)
        self.history.append(CallerSaid(words))
        if answer is None:
            return ""
        assert isinstance(answer, Answer)
        heard = answer.text
        tokens = answer.text.split()
        if heard_words is not None and heard_words < len(tokens):
            heard = " ".join(tokens[:heard_words])
            self.dialogue.cut(self.turn, heard)
        self.history.append(AgentSaid(self.turn, heard))
        self.turn += 1
        return answer.text

    def rebuilt(self) -> Life:
        """The same call after its session was lost."""
        other = Life(history=list(self.history), turn=self.turn)
        assert other.dialogue.rebuild(self.history, NOW, 0.0)[0] is None
        return other


LIVES = st.lists(st.tuples(st.sampled_from(SENTENCES), st.none() | st.integers(0, 30)), max_size=9)


@settings(deadline=None, max_examples=80)
@given(LIVES, st.booleans(), st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3))
def test_a_rebuilt_call_answers_as_the_one_that_was_lived_through(life: list[tuple[str, int | None]], greets: bool,
                                                                 later: list[str]) -> None:
    lived = Life()
    if greets:
        lived.greet()
    for words, heard in life:
        lived.live(words, heard)
    again = lived.rebuilt()
    assert again.dialogue.memory == lived.dialogue.memory
    for words in later:
        assert again.live(words, 4) == lived.live(words, 4)


def test_a_resumed_count_is_still_a_count_after_a_rebuild() -> None:
    lived = Life()
    lived.live("count to ten", 3)
    lived.live("go on", 2)
    again = lived.rebuilt()
    assert again.live("go on") == lived.live("go on") == "Six, seven, eight, nine, ten."


def test_a_reply_that_comes_out_different_is_kept_as_it_was_said() -> None:
    dialogue = Dialogue("another seed", GREETING)
    dialogue.rebuild([CallerSaid("count to ten"), AgentSaid(0, "Nine hundred and one, nine hundred")], NOW, 0.0)
    answer = dialogue.answer(typed("what was the last number you said"), 1, NOW, 0.0)
    assert isinstance(answer, Answer)
    assert answer.text == "The last number I said was nine hundred."


def test_a_sentence_without_a_reply_is_answered_after_a_rebuild() -> None:
    _, waiting = Dialogue("seed", GREETING).rebuild([AgentSaid(0, GREETING), CallerSaid("count to three")], NOW, 0.0)
    assert waiting == typed("count to three")


def test_two_parts_of_a_sentence_without_a_reply_are_one_sentence_after_a_rebuild() -> None:
    history: list[HistoryItem] = [CallerSaid("remind me to call mother"), CallerSaid("in ten seconds")]
    _, waiting = Dialogue("seed", GREETING).rebuild(history, NOW, 0.0)
    assert waiting == typed("remind me to call mother in ten seconds")


def test_a_backchannel_needs_no_answer_after_a_rebuild() -> None:
    assert Dialogue("seed", GREETING).rebuild([AgentSaid(0, GREETING), CallerSaid("mm-hm")], NOW, 0.0)[1] is None


@pytest.mark.parametrize("heard", ["", "One, two, ", "One, two, three, four"])
def test_an_open_reply_goes_on_where_its_text_ends(heard: str) -> None:
    dialogue = Dialogue("seed", GREETING)
    continuation, waiting = dialogue.rebuild([CallerSaid("count to ten"), AgentSaid(3, heard, open=True)], NOW, 0.0)
    assert waiting is None
    assert continuation is not None
    assert (continuation.turn, continuation.answer.text, continuation.written) == (3, COUNT, len(heard))


def test_an_open_greeting_goes_on_where_its_text_ends() -> None:
    continuation, _ = Dialogue("seed", GREETING).rebuild([AgentSaid(0, "Hello, this", open=True)], NOW, 0.0)
    assert continuation is not None
    assert (continuation.answer.text, continuation.written) == (GREETING, 11)


def test_an_answer_begun_again_after_nobody_heard_it_goes_on_after_a_rebuild() -> None:
    history: list[HistoryItem] = [CallerSaid("what is seven"), AgentSaid(0, ""), CallerSaid("times six"),
                                  AgentSaid(1, "Seven times ", open=True)]
    continuation, _ = Dialogue("seed", GREETING).rebuild(history, NOW, 0.0)
    assert continuation is not None
    assert continuation.answer.text == "Seven times six is forty two."


def test_a_reminder_acknowledged_twice_is_one_reminder_after_a_rebuild() -> None:
    text = "Okay, in one minute I will remind you to stretch."
    history: list[HistoryItem] = [CallerSaid("remind me to stretch in one minute"), AgentSaid(0, ""),
                                  AgentSaid(1, "Okay, in", open=True)]
    dialogue = Dialogue("seed", GREETING)
    continuation, _ = dialogue.rebuild(history, NOW, 0.0)
    assert continuation is not None
    assert continuation.answer.text == text
    assert [reminder.task for reminder in dialogue.memory.reminders] == ["stretch"]
    assert [said.turn for said in dialogue.memory.said] == [1]


def test_a_question_after_an_answer_nobody_heard_is_its_own_after_a_rebuild() -> None:
    history: list[HistoryItem] = [CallerSaid("my name is Sarah"), AgentSaid(0, ""), CallerSaid("count to three"),
                                  AgentSaid(1, "One, two", open=True)]
    dialogue = Dialogue("seed", GREETING)
    continuation, _ = dialogue.rebuild(history, NOW, 0.0)
    assert continuation is not None
    assert continuation.answer.text == "One, two, three."
    assert dialogue.memory.name == "sarah"


def test_a_reminder_outlives_a_rebuild_and_is_announced_once() -> None:
    history: list[HistoryItem] = [CallerSaid("remind me to stretch in ten seconds"),
                                  AgentSaid(0, "Okay, in ten seconds I will remind you to stretch.")]
    dialogue = Dialogue("seed", GREETING)
    dialogue.rebuild(history, NOW, 100.0)
    assert dialogue.due(109.9) is None
    assert dialogue.due(110.0) is not None
    done = Dialogue("seed", GREETING)
    done.rebuild([*history, AgentSaid(1, "This is your reminder: stretch.")], NOW, 100.0)
    assert done.due(1e6) is None


@pytest.mark.parametrize(("heard", "expected"), [
    (0, COUNT),
    (1, "Two, three, four, five, six, seven, eight, nine, ten."),
    (4, "Five, six, seven, eight, nine, ten."),
    (9, "Ten."),
    (None, "There is nothing to go on with. Shall I tell you a story?"),
])
def test_a_count_goes_on_with_the_number_after_the_last_one_heard(heard: int | None, expected: str) -> None:
    lived = Life()
    lived.live("count to ten", heard)
    assert lived.live("go on") == expected


def test_a_count_can_be_cut_and_gone_on_with_again_and_again() -> None:
    lived = Life()
    lived.live("count to ten", 3)
    assert lived.live("go on", 2).startswith("Four, five, six")
    assert lived.live("go on", 2).startswith("Six, seven, eight")
    assert lived.live("go on") == "Eight, nine, ten."


def test_a_story_goes_on_with_the_sentence_of_which_little_was_heard() -> None:
    lived = Life()
    whole = lived.live("tell me a story")
    first, second = whole.split(". ")[:2]
    lived.dialogue.cut(0, f"{first}. {second[:12]}")
    rest = lived.live("go on")
    assert rest.startswith(second)
    assert whole.endswith(rest)


def test_a_story_goes_on_in_a_sentence_of_which_most_was_heard() -> None:
    lived = Life()
    whole = lived.live("tell me a story")
    heard = " ".join(whole.split()[:14])
    lived.dialogue.cut(0, heard)
    rest = lived.live("go on")
    assert f"{heard} {rest[0].lower()}{rest[1:]}" == whole


@settings(deadline=None)
@given(st.integers(0, 200))
def test_going_on_leaves_out_nothing_that_was_not_heard(heard: int) -> None:
    lived = Life()
    whole = lived.live("tell me a story", heard)
    rest = lived.live("go on")
    left = len(whole.split()) - min(heard, len(whole.split()))
    if left:
        assert whole.lower().endswith(rest.lower())
        assert len(rest.split()) >= left
    else:
        assert "end of the story" in rest


def test_an_answer_taken_back_leaves_no_trace() -> None:
    lived = Life()
    lived.live("what is two plus two")
    before = lived.dialogue.memory
    lived.live("my name is Sarah")
    lived.live("plus eight")
    assert lived.dialogue.take_back(1) == typed("my name is Sarah")
    assert lived.dialogue.memory == before
    assert lived.dialogue.take_back(2) is None


def test_the_greeting_answers_nothing_that_could_be_asked_again() -> None:
    lived = Life()
    lived.greet()
    assert lived.dialogue.take_back(0) is None
    assert lived.dialogue.memory == Memory()


def test_an_empty_greeting_is_not_said() -> None:
    assert Dialogue("seed", "").greet(0) is None


def test_memory_keeps_the_newest_only() -> None:
    lived = Life()
    for number in range(KEPT + 5):
        lived.live(f"count to {number + 1}")
    memory = lived.dialogue.memory
    assert [said.turn for said in memory.said] == list(range(5, KEPT + 5))
    assert len(memory.caller) == KEPT
    assert replace(memory, said=(), caller=()) == Memory()
