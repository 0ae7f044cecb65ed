"""Words and their places in a growing text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.speakable import MAX_WORD_CHARS, Break, Scanner, Word


def scan(text: str, size: int | None = None, start: int = 0) -> list[Word]:
    scanner = Scanner(start)
    size = size or max(len(text), 1)
    words = [word for at in range(0, len(text), size) for word in scanner.push(text[at:at + size])]
    return words + scanner.finish()


def said(word: Word) -> str:
    return " ".join(token.name for token in word.tokens)


@pytest.mark.parametrize(("text", "spoken"), [
    ("Hello", "Hello"), ("5×3=15", "5 times 3 equals 15"), ("don’t", "don't"), ("naïve", "naive"),
    ("Straße", "Strasse"), ("12°C", "12 degrees C"),
    ("−5", "-5"), ("$3.50", "$3.50"), ("25%", "25%"), ("C++", "C plus plus"),
    ("**bold**", "bold"), ("(hello)", "hello"), ("“fine”", "fine"), ("3*4", "3 times 4"), ("#1", "number 1"),
    ("R&B", "R and B"), ("rock'n'roll", "rock'n'roll"), ("1,234", "1,234"), ("3:45", "3:45"), ("ﬁne", "fine"),
])
def test_symbols_and_accents_become_what_can_be_said(text: str, spoken: str) -> None:
    assert [said(word) for word in scan(text)] == [spoken]


@pytest.mark.parametrize("text", ["", "   ", "☃ ☃☃", "...", "\"", "日本語", "*", "\x00"])
def test_what_cannot_be_said_has_no_tokens(text: str) -> None:
    assert not any(word.tokens for word in scan(text))


@pytest.mark.parametrize(("text", "pauses"), [
    ("One, two.", [Break.CLAUSE, Break.SENTENCE]), ("Really?! Yes", [Break.SENTENCE, Break.NONE]),
    ("Mr. Smith", [Break.NONE, Break.NONE]), ("3 p.m. today", [Break.NONE] * 3),
    ("he said: \"no.\"", [Break.NONE, Break.CLAUSE, Break.SENTENCE]), ("3,000 cats", [Break.NONE] * 2),
    ("yes,no", [Break.CLAUSE, Break.NONE]), ("H. I", [Break.CLAUSE, Break.NONE]),
    ("so… well", [Break.SENTENCE, Break.NONE]),
])
def test_marks_say_how_long_to_pause(text: str, pauses: list[Break]) -> None:
    assert [word.pause for word in scan(text)] == pauses


def test_a_dash_lends_a_pause() -> None:
    assert [(said(word), word.pause) for word in scan("well—no - yes--but")] == [
        ("well", Break.NONE), ("", Break.CLAUSE), ("no", Break.NONE), ("", Break.CLAUSE), ("yes", Break.NONE),
        ("", Break.CLAUSE), ("but", Break.NONE)]


def test_spans_are_the_word_without_its_marks() -> None:
    text = "(Hello), “42%”! At 3 p.m. it's 5×3."
    assert [text[word.start:word.end] for word in scan(text)] == [
        "Hello", "42%", "At", "3", "p.m.", "it's", "5×3"]


def test_a_word_is_known_as_soon_as_a_mark_ends_it() -> None:
    scanner = Scanner()
    assert [said(word) for word in scanner.push("Well, hel")] == ["Well"]
    assert [said(word) for word in scanner.push("lo,")] == ["hello"]
    assert [said(word) for word in scanner.push(" there.")] == ["there"]
    assert [said(word) for word in scanner.push(" I can't.")] == ["I", "can't"]
    assert scanner.push(" e.") == []
    assert [said(word) for word in scanner.push("g. ")] == ["e.g"]
    assert scanner.push(" 3.") == []
    assert [said(word) for word in scanner.push("14 ")] == ["3.14"]


def test_places_count_from_where_the_text_starts() -> None:
    assert [(word.start, word.end) for word in scan("go on", start=100)] == [(100, 102), (103, 105)]


def test_a_run_without_spaces_is_cut() -> None:
    words = scan("x" * 1000)
    assert all(word.end - word.start <= MAX_WORD_CHARS for word in words)
    assert "".join(said(word) for word in words) == "x" * 1000


TEXTS = st.text(st.one_of(st.sampled_from("ab1 .,'-—%$!?\n\"()5×é☃"), st.characters()), max_size=80)


@given(TEXTS, st.integers(1, 7))
def test_words_do_not_depend_on_how_the_text_was_cut(text: str, size: int) -> None:
    def places(words: list[Word]) -> list[tuple[int, int, list[str]]]:
        return [(word.start, word.end, [token.name for token in word.tokens]) for word in words if word.tokens]

    assert places(scan(text, size)) == places(scan(text))


@given(TEXTS)
def test_words_are_in_order_ascii_and_inside_the_text(text: str) -> None:
    end = 0
    for word in scan(text):
        assert end <= word.start <= word.end <= len(text)
        end = word.end
        for token in word.tokens:
            assert token.name.isascii()
            assert token.name.isprintable()
            assert any(char.isalnum() for char in token.name)
            assert " " not in token.name


@given(TEXTS)
def test_no_letter_or_digit_of_plain_text_is_left_out(text: str) -> None:
    plain = [char for char in text if char.isascii() and char.isalnum()]
    kept = [char for word in scan(text) for char in text[word.start:word.end] if char.isascii() and char.isalnum()]
    assert kept == plain
