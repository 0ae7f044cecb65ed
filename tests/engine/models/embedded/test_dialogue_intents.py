from datetime import datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.dialogue.calling import Request
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.dialogue.measures import convert_value
from duologue.engine.models.embedded.dialogue.numbers import say_number, say_whole
from duologue.engine.models.embedded.dialogue.policy import (
    Answer,
    Sentence,
    Trust,
    is_backchannel,
    joined,
    typed,
)
from duologue.engine.models.embedded.dialogue.recall import last_number
from duologue.engine.models.embedded.dialogue.sums import compute

NOW = datetime(2026, 11, 21, 14, 5)


class Talk:
    """A dialogue without sound: every sentence is understood, every reply heard."""

    def __init__(self) -> None:
        self.dialogue = Dialogue("test", "Hello.")
        self.turn = 0

    def answer(self, sentence: Sentence, at: float = 0.0) -> Answer | None:
        self.turn += 1
        answer = self.dialogue.answer(sentence, self.turn, NOW, at)
        assert not isinstance(answer, Request)
        return answer

    def say(self, text: str, at: float = 0.0) -> str:
        answer = self.answer(typed(text), at)
        return answer.text if answer else ""


@pytest.mark.parametrize(("intent", "phrasings"), [
    ("greet", "hello | hi there | good morning | hey | hello again"),
    ("farewell", "goodbye | bye | good night | see you later | that's all"),
    ("thanks", "thank you | thanks a lot | many thanks | thank you very much"),
    ("how_are_you", "how are you | how are you doing today | how is it going"),
    ("who_are_you", "who are you | what is your name | are you a robot | who am i talking to"),
    ("help", "help | what can you do | what can i ask you | i need some help | how does this work"),
    ("present", "can you hear me | are you there | are you still there"),
    ("set_name", "my name is peter | i am anna | call me tom | my name is zaphod"),
    ("get_name", "what is my name | do you remember my name | who am i"),
    ("time", "what time is it | what's the time | can you tell me what the time is | tell me the time"),
    ("date", "what's the date today | what is today's date | tell me the date"),
    ("weekday", "what day is it | which day is it today | what day of the week is it"),
    ("arithmetic", "what is 7 * 6 | seven times six | how much is 12 plus 30 | calculate nine minus ten "
                   "| what's 90 / 4? | add two and three | what is minus five times three | what is 2.5 + 1"),
    ("percent", "what is 20% of 80 | twenty percent of eighty"),
    ("square", "what is nine squared | what is the square of 12"),
    ("root", "what is the square root of 16"),
    ("count", "count to twenty | count up to 5 | count from 5 to 15 | count to 100 in steps of 10 "
              "| please count to thirty | could you count to ten for me | count from ten down to two"),
    ("count_down", "count down from ten | count backwards from 20 to 10"),
    ("spell", "spell necessary | how do you spell beautiful | spell the word queue | spell zebra"),
    ("repeat", "repeat after me the weather is nice | say after me good people"),
    ("dice", "roll a die | roll two dice | throw the dice | roll 5 dice"),
    ("coin", "flip a coin | toss a coin | heads or tails"),
    ("convert", "convert ten miles to kilometers | how many feet are in five meters | how many inches are in a foot "
                "| what is 100 degrees fahrenheit in celsius | how many seconds are there in 3 hours "
                "| what is two gallons in liters | convert 3 pounds into kilograms"),
    ("remind", "remind me to call mum in ten seconds | remind me in two minutes to drink water "
               "| in five minutes remind me to stretch | set a timer for 3 minutes | set a ten second timer "
               "| remind me to leave in half an hour"),
    ("reminders", "what are my reminders | do i have any reminders | list my reminders"),
    ("forget", "cancel my reminders | forget all reminders | delete the reminder"),
    ("story", "tell me a story | read me a story | do you know any stories | i would like to hear a story"),
    ("joke", "tell me a joke | make me laugh"),
    ("stop", "stop | stop it | wait | hold on | be quiet | that's enough | never mind | wait a moment"),
    ("go_on", "go on | continue | carry on | keep going | go on with the story"),
    ("slower", "slower | speak slower please | slow down | not so fast"),
    ("faster", "faster | speak faster | speed up"),
    ("normal_speed", "speak normally | normal speed"),
    ("again", "say that again | what did you say | pardon | once more | can you repeat that"),
    ("last_said", "what was the last thing you said | what did you say last"),
    ("last_number", "what was the last number you said | what was the last number"),
    ("last_heard", "what did i say | what was the last thing i said"),
    ("yes", "yes | yes of course | exactly"), ("no", "no | nope"),
    ("backchannel", "mm-hm | uh-huh | yeah | okay | right | i see | sure | all right"),
])
def test_phrasings_mean_their_intent(intent: str, phrasings: str) -> None:
    for phrasing in phrasings.split(" | "):
        parse = grammar().read(typed(phrasing).words.split()).parse
        assert parse is not None, phrasing
        assert parse.intent == intent, phrasing


@settings(deadline=None)
@given(st.integers(0, 9_999), st.sampled_from(("plus", "minus", "times", "divided by")), st.integers(0, 9_999))
def test_a_sum_in_words_is_answered_with_its_result_in_words(left: int, operator: str, right: int) -> None:
    said = Talk().say(f"what is {say_whole(left)} {operator} {say_whole(right)}")
    if operator == "divided by" and right == 0:
        assert said == "Nothing can be divided by zero."
        return
    result = compute(Fraction(left), operator, Fraction(right))
    assert said.rstrip(".").split(" is ")[1] == say_number(result)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*sorted(grammar().words), "", "zebra", "7", "x1"]), max_size=8),
       st.sampled_from(tuple(Trust)), st.lists(st.sampled_from(sorted(grammar().words)), max_size=3))
def test_no_words_break_it(words: list[str], trust: Trust, caught: list[str]) -> None:
    talk = Talk()
    for _ in range(2):
        answer = talk.answer(Sentence(" ".join(words), trust, " ".join(caught)))
        assert answer is None or answer.text


@given(st.text(max_size=60))
def test_no_typed_text_breaks_it(text: str) -> None:
    Talk().say(text)


@given(st.fractions(-1000, 1000), st.sampled_from((("mile", "kilometer"), ("foot", "inch"), ("pound", "gram"),
                                                    ("fahrenheit", "celsius"), ("gallon", "liter"),
                                                    ("hour", "second"))))
def test_a_conversion_and_back_changes_nothing(number: Fraction, units: tuple[str, str]) -> None:
    there = convert_value(number, *units)
    assert there is not None
    assert convert_value(there, units[1], units[0]) == number


def test_words_of_a_place_for_any_words_need_not_be_trusted() -> None:
    talk = Talk()
    talk.say("remind me to")
    answer = talk.answer(Sentence("fetch the parcel in ten seconds", Trust.NONE))
    assert answer is not None
    assert answer.text == "Okay, in ten seconds I will remind you to fetch the parcel."


def test_not_understanding_is_said_in_different_ways() -> None:
    talk = Talk()
    assert len({talk.say(f"zebra {i}") for i in range(3)}) == 3


def test_stories_and_jokes_are_not_told_twice_in_a_row() -> None:
    talk = Talk()
    assert len({talk.say("tell me a story") for _ in range(3)}) == 3
    assert len({talk.say("tell me a joke") for _ in range(3)}) == 3


def test_pace_changes_in_steps_and_has_ends() -> None:
    talk = Talk()
    rates = []
    for text in ("slower", "slower", "slower", "normal speed", "faster", "faster", "faster"):
        answer = talk.answer(typed(text))
        assert answer is not None
        rates.append(answer.rate)
    assert rates == [0.8, 0.6, 0.6, 1.0, 1.25, 1.5, 1.5]


def test_there_is_a_limit_to_reminders() -> None:
    talk = Talk()
    said = [talk.say("set a timer for two minutes") for _ in range(21)]
    assert said[19] == "Okay, I will tell you in two minutes."
    assert said[20] == "I have too many reminders already."


@pytest.mark.parametrize("words", ["mm-hm", "yeah", "okay", "uh-huh", "right", "i see", "yes"])
def test_a_sign_of_listening_is_known(words: str) -> None:
    assert is_backchannel(words)


@pytest.mark.parametrize("words", ["stop", "no", "wait", "what time is it", "zebra", ""])
def test_what_wants_an_answer_is_no_sign_of_listening(words: str) -> None:
    assert not is_backchannel(words)


@pytest.mark.parametrize(("earlier", "later", "answered"), [
    (("remind me to", Trust.WHOLE), ("call mum in ten seconds", Trust.WHOLE), "remind me to call mum in ten seconds"),
    (("tell me a story", Trust.WHOLE), ("stop", Trust.WHOLE), "stop"),
    (("tell me a story", Trust.WHOLE), ("zebra crossing", Trust.NONE), "tell me a story"),
    (("tell me a story", Trust.WHOLE), ("okay", Trust.WHOLE), "tell me a story"),
    (("zebra", Trust.NONE), ("what time is it", Trust.WHOLE), "what time is it"),
])
def test_of_two_sentences_waiting_the_right_one_is_answered(
        earlier: tuple[str, Trust], later: tuple[str, Trust], answered: str) -> None:
    assert joined(Sentence(*earlier), Sentence(*later)).words == answered


@pytest.mark.parametrize(("text", "number"), [
    ("One, two, three,", "three"), ("Seven times six is forty two.", "forty two"), ("Hello.", None),
    ("twenty five, twenty six", "twenty six"), ("It is minus three point five.", "minus three point five"),
    ("a lamp and a boat", None), ("You rolled 4 and 12.", "twelve"),
    ("one hundred and five, one hundred and", "one hundred"),
])
def test_the_last_number_of_a_text(text: str, number: str | None) -> None:
    assert last_number(text) == number
