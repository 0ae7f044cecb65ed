"""How a reply's text is given out: in order, whole words, a little ahead of the voice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.dialogue.stories import STORIES
from duologue.engine.models.embedded.mouth import AHEAD_S, Mouth, Piece, pieces, seconds

UNIT_S = 0.08
TEXTS = st.one_of(st.text(max_size=200), st.sampled_from(STORIES),
                  st.lists(st.sampled_from(("one", "two,", "three.", "four?", " ", "five,\n")), max_size=60)
                  .map(" ".join))


def out(mouth: Mouth, most: int = 5000) -> list[tuple[float, Piece]]:
    """Every piece, and the seconds after the start at which it came."""
    came = []
    for unit in range(most):
        came += [(unit * UNIT_S, piece) for piece in mouth.tick(UNIT_S)]
        if not mouth.open:
            return came
    raise AssertionError("the reply does not end")


@given(TEXTS, st.data())
def test_pieces_make_the_text_again_from_any_start(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    cut = pieces(text, start)
    assert "".join(piece.text for piece in cut) == text[start:]
    at = start
    for piece in cut:
        assert piece.start == at
        at += len(piece.text)
    assert [piece.last for piece in cut] == [False] * (len(cut) - 1) + [True]


@given(TEXTS)
def test_a_piece_never_ends_inside_a_word(text: str) -> None:
    for piece in pieces(text)[:-1]:
        assert piece.text[-1].isspace()
        assert piece.text.strip()


@pytest.mark.parametrize("text", ["Okay.", "Seven times six is forty two.", "Cat: C, A, T."])
def test_a_short_reply_is_one_piece(text: str) -> None:
    assert pieces(text) == [Piece(0, text, True)]


@pytest.mark.parametrize("text", STORIES)
def test_pieces_are_short_and_the_first_one_is_shorter(text: str) -> None:
    cut = pieces(text)
    assert max(len(piece.text.split()) for piece in cut) <= 9
    assert len(cut[0].text.split()) <= 7


@given(TEXTS, st.floats(0.5, 2.0), st.data())
def test_a_reply_comes_whole_and_ends_once(text: str, rate: float, data: st.DataObject) -> None:
    written = data.draw(st.integers(0, len(text)))
    mouth = Mouth()
    mouth.begin(text, rate, written)
    came = [piece for _, piece in out(mouth)]
    assert "".join(piece.text for piece in came) == text[written:]
    assert [piece.last for piece in came] == [False] * (len(came) - 1) + [True]
    assert mouth.written == len(text)
    assert mouth.close() is None


@given(st.sampled_from(STORIES), st.sampled_from((0.6, 1.0, 1.5)))
def test_writing_is_ahead_of_the_voice_by_no_more_than_a_moment_and_a_piece(text: str, rate: float) -> None:
    mouth = Mouth()
    mouth.begin(text, rate)
    spoken = 0.0
    longest = max(seconds(piece.text) for piece in pieces(text)) / rate
    for at, piece in out(mouth):
        assert spoken - at < AHEAD_S + UNIT_S
        spoken += seconds(piece.text) / rate
        assert spoken - at < AHEAD_S + longest + UNIT_S


@given(st.sampled_from(STORIES), st.sampled_from((0.6, 1.0, 1.5)))
def test_writing_never_falls_behind_the_voice(text: str, rate: float) -> None:
    mouth = Mouth()
    mouth.begin(text, rate)
    spoken = 0.0
    for at, piece in out(mouth):
        assert at <= spoken
        spoken += seconds(piece.text) / rate


def test_a_slow_voice_is_written_for_slowly() -> None:
    lengths = []
    for rate in (0.6, 1.0, 1.5):
        mouth = Mouth()
        mouth.begin(STORIES[0], rate)
        lengths.append(out(mouth)[-1][0])
    assert lengths[0] > lengths[1] > lengths[2]


def test_after_a_stop_nothing_is_written() -> None:
    mouth = Mouth()
    mouth.begin(STORIES[0], 1.0)
    assert mouth.tick(UNIT_S)
    mouth.stop()
    assert not mouth.open
    assert mouth.tick(100.0) == []
    assert mouth.close() is None


def test_a_closed_reply_ends_with_an_empty_piece_where_it_was() -> None:
    mouth = Mouth()
    mouth.begin(STORIES[0], 1.0)
    before = "".join(piece.text for piece in mouth.tick(UNIT_S))
    assert mouth.close() == Piece(len(before), "", True)
    assert mouth.tick(100.0) == []


def test_a_reply_written_to_its_end_before_is_only_closed() -> None:
    mouth = Mouth()
    mouth.begin("Okay.", 1.0, written=5)
    assert mouth.tick(UNIT_S) == [Piece(5, "", True)]
