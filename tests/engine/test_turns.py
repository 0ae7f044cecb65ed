from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine import Fence, ReplyText, TextSpan, TurnStatus
from duologue.engine.turns import Turn, Turns, heard_text

TEXT = '"One, two; three."'
SPANS = [TextSpan(1, 4, 0, 100), TextSpan(6, 9, 120, 200), TextSpan(11, 16, 200, 300)]


def turn(*, spans: list[TextSpan] | None = None, samples: int = 300, done: bool = False) -> Turn:
    made = Turn(0, text=TEXT, samples=samples, spans=SPANS if spans is None else spans)
    made.status = TurnStatus.DONE if done else None
    return made


@pytest.mark.parametrize(("samples", "heard"), [
    (0, ""), (74, ""), (75, '"One, '), (179, '"One, '), (180, '"One, two; '), (274, '"One, two; '), (275, TEXT)])
def test_a_word_counts_from_three_quarters_and_owns_what_follows_it(samples: int, heard: str) -> None:
    assert heard_text(turn(), samples, 24000) == heard


def test_words_whose_span_has_not_come_were_not_heard() -> None:
    assert heard_text(turn(spans=SPANS[:2], samples=5000), 5000, 24000) == '"One, two; '


def test_all_of_a_reply_that_was_played_to_the_end_was_heard() -> None:
    assert heard_text(turn(spans=SPANS[:1], done=True), 300, 24000) == TEXT


def test_without_spans_the_text_is_cut_in_proportion_to_whole_words() -> None:
    whole = Turn(0, text="one two three four ", samples=1900, status=TurnStatus.DONE)
    assert [heard_text(whole, n, 24000) for n in (0, 299, 300, 700, 1200, 1299, 1300)] == [
        "", "", "one ", "one two ", "one two ", "one two ", "one two three "]


def test_without_spans_and_whole_audio_a_usual_speed_is_assumed() -> None:
    begun = Turn(0, text="one two three four five six seven", samples=8000)
    # Half a second of 15 characters a second: seven of them.
    assert heard_text(begun, 8000, 16000) == "one two "


@given(st.integers(0, 400), st.integers(0, 400), st.booleans(), st.booleans())
def test_who_listens_longer_hears_no_less(a: int, b: int, done: bool, spans: bool) -> None:
    made = turn(done=done, spans=None if spans else [])
    short, long = (heard_text(made, n, 16000) for n in sorted((a, b)))
    assert long.startswith(short)
    assert TEXT.startswith(long)


def test_a_change_of_rate_is_kept_when_text_is_sent_in_larger_pieces() -> None:
    made = Turn(0)
    for text, rate in (("a ", 1.0), ("b ", 1.0), ("c ", 0.5), ("d ", 0.5), ("e", 1.0)):
        made.write(ReplyText(Fence("s", 0, 0, made.text_seq), len(made.text), text, text == "e", rate))
    pieces = []
    while (piece := made.unsent()) is not None:
        end, rate = piece
        pieces.append((made.text[made.sent:end], rate))
        made.sent, made.sent_last = end, made.text_whole and end == len(made.text)
    assert pieces == [("a b ", 1.0), ("c d ", 0.5), ("e", 1.0)]


def test_old_replies_are_forgotten_one_by_one() -> None:
    turns = Turns(24000)
    gone = [turns.begin(n) for n in range(33)]
    assert [turn.number for turn in gone if turn is not None] == [0]
    assert turns.last == 32


def test_nothing_was_heard_before_the_first_word_has_ended() -> None:
    turns = Turns(16000)
    turns.begin(0)
    begun = turns.open[0]
    begun.text = "one two three four five"
    turns.grow(begun, 16000, ())
    assert turns.heard(begun, 16000) == ""
    turns.grow(begun, 0, (TextSpan(0, 3, 0, 15000),))
    assert turns.heard(begun, 16000) == "one "


def test_a_model_that_gives_no_spans_is_known_by_its_first_seconds() -> None:
    turns = Turns(16000)
    for number in range(2):
        turns.begin(number)
        turns.open[number].text = "one two three four five"
    first, second = turns.open
    turns.grow(first, 31999, ())
    assert turns.heard(first, 31999) == ""
    turns.grow(first, 1, ())
    assert turns.heard(first, 16000) == "one two "
    turns.grow(second, 8000, ())
    assert turns.heard(second, 8000) == "one two "
