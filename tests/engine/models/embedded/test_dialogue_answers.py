"""What the embedded thinker answers, sentence by sentence, as typed text."""

from __future__ import annotations

import re
from datetime import datetime

import pytest

from duologue.engine.models.embedded.dialogue.calling import Request
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.policy import Answer, Sentence, Trust, typed

NOW = datetime(2026, 3, 21, 14, 30)
COUNT = "One, two, three, four, five, six, seven, eight, nine, ten."


class Talk:
    """A call whose caller types; second ``n`` of it is the ``n``-th sentence."""

    def __init__(self, seed: str = "seed", now: datetime = NOW) -> None:
        self.dialogue = Dialogue(seed, "Hello, this is a test.")
        self.turn = 0
        self._now = now

    def say(self, words: str | Sentence) -> Answer | None:
        sentence = typed(words) if isinstance(words, str) else words
        answer = self.dialogue.answer(sentence, self.turn, self._now, float(self.turn))
        self.turn += 1
        assert not isinstance(answer, Request)
        return answer

    def reply(self, words: str | Sentence) -> str:
        answer = self.say(words)
        return answer.text if answer is not None else ""

    def cut(self, heard: str) -> None:
        """Cut the newest reply; ``heard`` is what the caller heard of it."""
        self.dialogue.cut(self.turn - 1, heard)


def reply(words: str, *, now: datetime = NOW) -> str:
    return Talk(now=now).reply(words)


@pytest.mark.parametrize(("words", "expected"), [
    ("what is seven times six", "Seven times six is forty two."),
    ("what's 7 x 6", "Seven times six is forty two."),
    ("7*6", "Seven times six is forty two."),
    ("7 multiplied by 6?", "Seven multiplied by six is forty two."),
    ("could you please calculate seven times six", "Seven times six is forty two."),
    ("12 + 30", "Twelve plus thirty is forty two."),
    ("add twelve and thirty", "Twelve plus thirty is forty two."),
    ("1,000 + 1", "One thousand plus one is one thousand and one."),
    ("what is five minus twelve", "Five minus twelve is minus seven."),
    ("calculate minus five plus two", "Minus five plus two is minus three."),
    ("minus three times minus four", "Minus three times minus four is twelve."),
    ("5 - -3", "Five minus minus three is eight."),
    ("5 * -3", "Five times minus three is minus fifteen."),
    ("5--3", "Five minus minus three is eight."),
    ("-5 - 3", "Minus five minus three is minus eight."),
    ("-6 / -3", "Minus six divided by minus three is two."),
    ("what is ten divided by four", "Ten divided by four is two point five."),
    ("10/4", "Ten divided by four is two point five."),
    ("what is one divided by three", "One divided by three is about zero point three three."),
    ("what is 2.5 times 4", "Two point five times four is ten."),
    ("two point five plus one point two five", "Two point five plus one point two five is three point seven five."),
    ("what is five divided by zero", "Nothing can be divided by zero."),
    ("99999 times 99999", "Ninety nine thousand nine hundred and ninety nine times ninety nine thousand nine hundred "
                          "and ninety nine is nine billion nine hundred and ninety nine million eight hundred "
                          "thousand and one."),
    ("what is fifteen percent of eighty", "Fifteen percent of eighty is twelve."),
    ("15% of 80", "Fifteen percent of eighty is twelve."),
    ("how much is 12.5 percent of 10", "Twelve point five percent of ten is one point two five."),
    ("5 squared", "Five squared is twenty five."),
    ("what is the square of twelve", "Twelve squared is one hundred and forty four."),
    ("the square root of sixteen", "The square root of sixteen is four."),
    ("what is the square root of 2", "The square root of two is about one point four one."),
])
def test_a_sum_is_answered_with_its_exact_or_rounded_result(words: str, expected: str) -> None:
    assert reply(words) == expected


def test_a_sum_goes_on_from_the_last_result() -> None:
    talk = Talk()
    talk.reply("what is seven times six")
    assert talk.reply("plus eight") == "Forty two plus eight is fifty."
    assert talk.reply("and divided by five") == "Fifty divided by five is ten."


def test_a_sum_without_a_result_before_it_asks_for_one() -> None:
    assert "no number to start from" in reply("plus eight")


@pytest.mark.parametrize(("words", "expected"), [
    ("count to five", "One, two, three, four, five."),
    ("please count up to 5 for me", "One, two, three, four, five."),
    ("count from three to seven", "Three, four, five, six, seven."),
    ("count from 18 to 21", "Eighteen, nineteen, twenty, twenty one."),
    ("count to ten by two", "Two, four, six, eight, ten."),
    ("count to twenty in steps of five", "Five, ten, fifteen, twenty."),
    ("count from 1 to 10 in steps of 3", "One, four, seven, ten."),
    ("count down from five", "Five, four, three, two, one, zero."),
    ("count backwards from ten to seven", "Ten, nine, eight, seven."),
    ("count from five down to two", "Five, four, three, two."),
    ("count from 5 to 2", "Five, four, three, two."),
    ("count to ten by zero", "I cannot count in steps of zero."),
    ("count to one thousand", "That would take me too long. I can count up to two hundred numbers at a time."),
])
def test_a_count_goes_up_down_and_in_steps(words: str, expected: str) -> None:
    assert reply(words) == expected


@pytest.mark.parametrize(("words", "expected"), [
    ("spell apple", "Apple: A, P, P, L, E."),
    ("how do you spell rhythm", "Rhythm: R, H, Y, T, H, M."),
    ("can you spell the word queue please", "Queue: Q, U, E, U, E."),
    ("how is banana spelled", "Banana: B, A, N, A, N, A."),
    ("spell xyzzy", "Xyzzy: X, Y, Z, Z, Y."),
    ("spell two words", "I can only spell one word at a time. Which one?"),
    ("repeat after me the sea is blue", "The sea is blue."),
    ("say after me: hello there", "Hello there."),
    ("repeat after me 25 apples", "Twenty five apples."),
])
def test_words_are_spelled_and_repeated(words: str, expected: str) -> None:
    assert reply(words) == expected


@pytest.mark.parametrize(("words", "expected"), [
    ("convert 5 miles to kilometers", "Five miles are about eight point zero five kilometers."),
    ("convert one inch into centimeters", "One inch is two point five four centimeters."),
    ("how many feet are in five meters", "Five meters are about sixteen point four feet."),
    ("what is ten kilograms in pounds", "Ten kilograms are about twenty two point zero five pounds."),
    ("how many minutes are in an hour", "One hour is sixty minutes."),
    ("how many seconds are there in a day", "One day is eighty six thousand four hundred seconds."),
    ("what is 100 degrees celsius in fahrenheit",
     "One hundred degrees celsius are two hundred and twelve degrees fahrenheit."),
    ("convert 32 fahrenheit to celsius", "Thirty two degrees fahrenheit are zero degrees celsius."),
    ("convert minus 40 celsius to fahrenheit", "Minus forty degrees celsius are minus forty degrees fahrenheit."),
    ("convert 10 kilograms to miles", "Kilograms and miles do not measure the same thing."),
])
def test_a_measure_is_converted(words: str, expected: str) -> None:
    assert reply(words) == expected


@pytest.mark.parametrize(("hour", "minute", "expected"), [
    (0, 5, "It is twelve oh five in the morning."), (9, 0, "It is nine o'clock in the morning."),
    (12, 0, "It is twelve o'clock in the afternoon."), (14, 30, "It is half past two in the afternoon."),
    (18, 1, "It is six oh one in the evening."), (23, 59, "It is eleven fifty nine in the evening."),
])
def test_the_time_is_said_as_people_say_it(hour: int, minute: int, expected: str) -> None:
    now = NOW.replace(hour=hour, minute=minute)
    for words in ("what time is it", "tell me the time", "What's the time?", "do you know what time it is"):
        assert reply(words, now=now) == expected


@pytest.mark.parametrize(("day", "expected"), [
    (datetime(2026, 3, 21), "Today is Saturday, March the twenty first, twenty twenty six."),
    (datetime(2005, 12, 12), "Today is Monday, December the twelfth, two thousand and five."),
    (datetime(2030, 6, 30), "Today is Sunday, June the thirtieth, twenty thirty."),
])
def test_the_date_has_a_weekday_an_ordinal_and_a_year(day: datetime, expected: str) -> None:
    assert reply("what is the date today", now=day) == reply("tell me the date", now=day) == expected
    assert expected.split()[2].strip(",") in reply("what day is it", now=day)


_FACES = ("one", "two", "three", "four", "five", "six")


@pytest.mark.parametrize("words", ["roll a die", "roll the dice", "roll two dice", "throw 5 dice"])
def test_dice_show_one_to_six_and_are_the_same_for_the_same_seed(words: str) -> None:
    wanted = {"roll a die": 1, "roll the dice": 2, "roll two dice": 2, "throw 5 dice": 5}[words]
    seen = set()
    for seed in map(str, range(40)):
        text = Talk(seed).reply(words)
        assert text == Talk(seed).reply(words)
        rolled = re.findall(r"\w+", text.split(".")[0].replace("You rolled", "").replace(" a ", " "))
        faces = [word for word in rolled if word != "and"]
        assert len(faces) == wanted
        assert set(faces) <= set(_FACES)
        seen |= set(faces)
    assert seen == set(_FACES)


def test_a_coin_shows_both_sides_and_is_the_same_for_the_same_seed() -> None:
    tossed = [Talk(str(seed)).reply("flip a coin") for seed in range(20)]
    assert set(tossed) == {"It is heads.", "It is tails."}
    assert tossed == [Talk(str(seed)).reply("heads or tails") for seed in range(20)]


def test_two_rolls_of_one_call_are_not_the_same_roll() -> None:
    talk = Talk()
    assert len({talk.reply("roll nine dice") for _ in range(5)}) > 1


@pytest.mark.parametrize(("words", "expected", "due", "announced"), [
    ("remind me to drink water in ten seconds", "Okay, in ten seconds I will remind you to drink water.", 10,
     "This is your reminder: drink water."),
    ("remind me in two minutes to call my wife", "Okay, in two minutes I will remind you to call your wife.", 120,
     "This is your reminder: call your wife."),
    ("in 1 hour remind me to leave", "Okay, in one hour I will remind you to leave.", 3600,
     "This is your reminder: leave."),
    ("remind me to leave in half an hour", "Okay, in half an hour I will remind you to leave.", 1800,
     "This is your reminder: leave."),
    ("set a timer for 5 minutes", "Okay, I will tell you in five minutes.", 300, "Your five minutes are over."),
    ("set a one minute timer", "Okay, I will tell you in one minute.", 60, "Your one minute is over."),
])
def test_a_reminder_is_announced_when_it_is_due_and_only_once(words: str, expected: str, due: int,
                                                              announced: str) -> None:
    talk = Talk()
    assert talk.reply(words) == expected
    assert talk.dialogue.due(due - 0.01) is None
    reminder = talk.dialogue.due(due)
    assert reminder is not None
    said = talk.dialogue.remind(reminder, 1)
    assert said is not None
    assert said.text == announced
    assert talk.dialogue.due(10 * due) is None


def test_reminders_are_listed_and_forgotten() -> None:
    talk = Talk()
    assert talk.reply("what are my reminders") == "You have no reminders."
    talk.reply("remind me to stretch in ten seconds")
    assert talk.reply("do I have any reminders?") == "You have one reminder: stretch, in nine seconds."
    assert talk.reply("forget all my reminders") == "Okay, I have forgotten your reminders."
    assert talk.dialogue.due(1e6) is None


def test_the_reminder_that_is_due_first_comes_first() -> None:
    talk = Talk()
    talk.reply("remind me to leave in one minute")
    talk.reply("remind me to stretch in ten seconds")
    reminder = talk.dialogue.due(100)
    assert reminder is not None
    assert reminder.task == "stretch"


def test_every_story_is_another_one_until_they_begin_again() -> None:
    talk = Talk()
    told = [talk.reply(words) for words in ("tell me a story", "another story", "tell me another story",
                                            "I want to hear another story")]
    assert len(set(told[:3])) == 3
    assert told[3] == told[0]
    assert all(len(story.split()) > 100 for story in told)


def test_stop_is_taken_briefly_and_go_on_continues_after_it() -> None:
    talk = Talk()
    talk.reply("count to ten")
    talk.cut("One, two, three, ")
    assert talk.reply("stop") == "Okay."
    assert talk.reply("go on") == "Four, five, six, seven, eight, nine, ten."


@pytest.mark.parametrize("words", ["stop", "stop it", "wait a second", "be quiet", "that's enough", "hold on"])
def test_all_ways_to_say_stop_are_short_replies(words: str) -> None:
    assert reply(words) == "Okay."


def test_slower_and_faster_change_the_pace_of_this_and_later_replies() -> None:
    talk = Talk()
    paces = []
    for words in ("count to three", "slower", "count to three", "speak more slowly", "faster", "normal speed"):
        answer = talk.say(words)
        assert answer is not None
        paces.append(answer.rate)
    assert paces == [1.0, 0.8, 0.8, 0.6, 0.8, 1.0]


def test_the_slowest_pace_stays_and_says_so() -> None:
    talk = Talk()
    last = [talk.say("slow down") for _ in range(4)][-1]
    assert last is not None
    assert last.text == "I cannot speak any slower."
    assert last.rate == 0.6


@pytest.mark.parametrize("words", ["say that again", "repeat that", "what did you say", "pardon", "once more"])
def test_say_that_again_repeats_the_last_reply(words: str) -> None:
    talk = Talk()
    talk.reply("spell cat")
    assert talk.reply(words) == "Cat: C, A, T."


def test_the_last_thing_and_number_said_are_those_that_were_heard() -> None:
    talk = Talk()
    talk.reply("count to ten")
    talk.cut("One, two, three, four, ")
    assert talk.reply("what was the last number you said") == "The last number I said was four."
    talk.reply("count to ten")
    talk.cut("One, two, three, ")
    assert talk.reply("what was the last thing you said") == "The last thing I said was: One, two, three."


def test_a_number_of_several_words_is_one_number() -> None:
    talk = Talk()
    talk.reply("count from 119 to 130")
    talk.cut("One hundred and nineteen, one hundred and twenty, one hundred and twenty one, ")
    assert talk.reply("what was the last number you said") == "The last number I said was one hundred and twenty one."


def test_a_reply_nobody_heard_was_not_said() -> None:
    talk = Talk()
    talk.reply("count to ten")
    talk.cut("")
    assert talk.reply("what was the last number you said") == "I have not said any number yet."


def test_without_any_reply_there_is_nothing_to_repeat() -> None:
    for words in ("say that again", "what was the last thing you said"):
        assert reply(words) == "I have not said anything yet."


def test_what_the_caller_said_is_given_back() -> None:
    talk = Talk()
    assert talk.reply("what did I say") == "You have not said anything before."
    talk.reply("what is 7 times 6")
    assert talk.reply("what did I say") == "You said: what is seven times six."


@pytest.mark.parametrize("words", ["my name is Sarah", "I'm Sarah", "I am Sarah", "call me Sarah"])
def test_a_name_is_remembered_and_used(words: str) -> None:
    talk = Talk()
    assert talk.reply("what's my name") == "You have not told me your name."
    assert talk.reply(words) == "Nice to meet you, Sarah."
    assert talk.reply("do you remember my name") == "Your name is Sarah."
    assert talk.reply("goodbye") == "Goodbye, Sarah."


@pytest.mark.parametrize(("words", "expected"), [
    ("help", "I can do sums, count, spell"), ("what can you do", "I can do sums, count, spell"),
    ("can you hear me", "Yes, I can hear you."), ("are you still there", "Yes, I can hear you."),
    ("who are you", "I am Duologue"), ("what's your name?", "I am Duologue"), ("how are you", "I am fine"),
    ("good night", "Goodbye."), ("no", "Okay."), ("yes", "Good. What can I do for you?"),
])
def test_courtesies_are_answered(words: str, expected: str) -> None:
    assert reply(words).startswith(expected)


@pytest.mark.parametrize("words", ["mm-hm", "uh-huh", "okay", "I see", "yeah", "right", "Wow!"])
def test_a_backchannel_gets_no_reply(words: str) -> None:
    assert reply(words) == ""


@pytest.mark.parametrize(("begun", "question", "rest", "expected"), [
    ("count", "Up to which number?", "to five", "One, two, three, four, five."),
    ("what is five times", "What is five times what?", "six", "Five times six is thirty."),
    ("spell", "Which word shall I spell?", "cat", "Cat: C, A, T."),
    ("repeat after me", "What shall I repeat?", "blue whales", "Blue whales."),
    ("remind me to stretch", "When? Say, for example: in ten seconds.", "in ten seconds",
     "Okay, in ten seconds I will remind you to stretch."),
    ("my name is", "What is your name?", "Tom", "Nice to meet you, Tom."),
    ("set a timer for", "For how long?", "two minutes", "Okay, I will tell you in two minutes."),
])
def test_the_beginning_of_a_sentence_is_asked_back_and_can_be_finished(begun: str, question: str, rest: str,
                                                                      expected: str) -> None:
    talk = Talk()
    assert talk.reply(begun) == question
    assert talk.reply(rest) == expected


def test_a_new_sentence_after_a_question_back_is_taken_for_itself() -> None:
    talk = Talk()
    talk.reply("count")
    assert talk.reply("spell cat") == "Cat: C, A, T."
    assert "forty two" in talk.reply("six times seven")


def test_half_a_sentence_heard_is_asked_back_with_what_is_sure_of_it() -> None:
    half = Sentence("cow into twenty fish", Trust.HALF, "twenty")
    assert Talk().reply(half) == "I only understood: twenty. Could you say the whole of it again?"
    begun = Sentence("spell the wart", Trust.HALF, "spell the")
    assert Talk().reply(begun).endswith("?")


def test_what_is_not_trusted_is_never_acted_on() -> None:
    for words in ("count to five", "slower", "my name is sarah"):
        talk = Talk()
        answer = talk.say(Sentence(words, Trust.NONE))
        assert answer is not None
        assert answer.intent == "ask_back"
        assert answer.rate == 1.0
        assert not talk.dialogue.memory.name


def test_what_is_not_understood_is_said_so_with_an_example_that_works() -> None:
    talk = Talk()
    first, second, third = (talk.reply(words) for words in ("green ideas sleep", "colourless", "furiously so"))
    assert first.startswith("Sorry")
    assert second.startswith("I still do not understand.")
    assert "Say help" in third
    for text in (first, second):
        answer = Talk().say(text.rsplit(": ", 1)[1])
        assert answer is not None
        assert answer.intent != "ask_back"


def test_understanding_something_forgives_what_was_missed() -> None:
    talk = Talk()
    talk.reply("green ideas sleep")
    talk.reply("count to three")
    assert talk.reply("green ideas sleep").startswith("Sorry")


def test_a_yes_after_an_offer_takes_it_and_a_no_does_not() -> None:
    talk = Talk()
    assert "Shall I tell you a story?" in talk.reply("go on")
    assert len(talk.reply("okay").split()) > 100
    talk = Talk()
    talk.reply("go on")
    assert talk.reply("no") == "Okay."
    assert talk.reply("okay") == ""


@pytest.mark.parametrize("words", ["", "   ", "?!", "日本語", "\x00", "-", "...5", "1e999", "9" * 50, "%" * 20,
                                   "a" * 3000, "five " * 200, "count to " * 60])
def test_odd_text_is_answered_and_never_an_error(words: str) -> None:
    answer = Talk().say(words)
    assert answer is not None
    assert answer.text
