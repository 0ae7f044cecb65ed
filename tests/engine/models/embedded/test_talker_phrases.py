"""When a phrase is said, and where it ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.phrasing import Phrase, Phraser
from duologue.engine.models.embedded.speakable import Scanner, Word


class Reader:
    """A phraser with a scanner before it."""

    def __init__(self) -> None:
        self.text = ""
        self.scanner, self.phraser = Scanner(), Phraser()

    def push(self, text: str) -> list[str]:
        self.text += text
        self.phraser.push(self.scanner.push(text))
        return [self.show(phrase.words) for phrase in self.phrases()]

    def finish(self) -> list[str]:
        self.phraser.push(self.scanner.finish())
        self.phraser.finish()
        return [self.show(phrase.words) for phrase in self.phrases()]

    def phrases(self) -> list[Phrase]:
        out = []
        while (phrase := self.phraser.next()) is not None:
            out.append(phrase)
        return out

    def show(self, words: tuple[Word, ...]) -> str:
        return " ".join(self.text[word.start:word.end] for word in words)


def test_a_clause_is_said_as_soon_as_its_mark_is_there() -> None:
    reader = Reader()
    assert reader.push("Well") == []
    assert reader.push(", I") == ["Well"]


def test_an_unmarked_phrase_waits_for_three_words_and_one_to_come() -> None:
    reader = Reader()
    assert reader.push("once upon a") == []
    assert reader.push(" time ") == ["once upon a"]
    assert reader.push("there lived ") == []
    assert reader.finish() == ["time there lived"]


def test_the_first_phrase_is_short_and_later_ones_longer() -> None:
    reader = Reader()
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    assert reader.push(text) == ["one two three four", "five six seven eight nine ten eleven twelve"]
    assert reader.finish() == ["thirteen fourteen fifteen"]


def test_a_phrase_ends_at_its_last_mark_within_reach() -> None:
    reader = Reader()
    assert reader.push("Hi. One, two, three, four, five, six, seven, eight, nine, ten, eleven, ") == [
        "Hi", "One two three four five six seven eight nine ten", "eleven"]


def test_no_phrase_runs_over_the_end_of_a_sentence() -> None:
    reader = Reader()
    assert reader.push("Yes. No. I do. ") == ["Yes", "No", "I do"]


def test_neighbours_come_from_the_same_sentence_only() -> None:
    reader = Reader()
    reader.phraser.push(reader.scanner.push("Yes. One, two, three, four, five, six, seven, eight, nine, ten, "
                                            "eleven, twelve. Good. "))
    reader.text = ("Yes. One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve. Good. ")
    seen = [tuple(map(reader.show, (phrase.before, phrase.words, phrase.after))) for phrase in reader.phrases()]
    assert seen == [
        ("", "Yes", ""), ("", "One two three four five six seven eight nine ten", "eleven twelve"),
        ("eight nine ten", "eleven twelve", ""), ("", "Good", "")]


def test_numbers_make_a_phrase_short() -> None:
    reader = Reader()
    phrases = reader.push("Hi. " + "123456789 " * 6)
    assert phrases[1:] == ["123456789 123456789"] * 2


def test_a_dash_lends_its_pause_to_the_word_before_it() -> None:
    reader = Reader()
    assert reader.push("well — maybe") == ["well"]


def test_only_the_last_phrase_of_a_finished_text_is_final() -> None:
    reader = Reader()
    reader.push("Yes. No")
    reader.phraser.push(reader.scanner.finish())
    reader.phraser.finish()
    assert [phrase.final for phrase in reader.phrases()] == [True]
    assert reader.phraser.done


@given(st.lists(st.sampled_from(["a", "word,", "end.", "1234567890", "—", "☃", "x" * 40, "Mr."]), max_size=60),
       st.integers(1, 9))
def test_every_word_is_said_once_and_in_order(pieces: list[str], size: int) -> None:
    text = " ".join(pieces)
    reader = Reader()
    said: list[str] = []
    for at in range(0, len(text), size):
        said += reader.push(text[at:at + size])
    said += reader.finish()
    scanner = Scanner()
    words = [word for word in scanner.push(text) + scanner.finish() if word.tokens]
    assert " ".join(said).split() == [text[word.start:word.end] for word in words]
    assert reader.phraser.done
    assert not reader.phraser.ready
