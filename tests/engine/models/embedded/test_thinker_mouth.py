from hypothesis import given
from hypothesis import strategies as st

from duologue.engine.models.embedded.dialogue.stories import STORIES
from duologue.engine.models.embedded.mouth import AHEAD_S, Mouth, Piece, pieces, seconds

TEXTS = st.lists(st.sampled_from(["one", "two,", "three.", "what?", "a", "longer-word", "so:"]),
                 min_size=1, max_size=60).map(" ".join)


@given(TEXTS, st.integers(0, 40))
def test_pieces_put_together_are_the_text(text: str, start: int) -> None:
    start = min(start, len(text))
    cut = pieces(text, start)
    assert "".join(piece.text for piece in cut) == text[start:]
    at = start
    for piece in cut:
        assert piece.start == at
        at += len(piece.text)
    assert [piece.last for piece in cut] == [False] * (len(cut) - 1) + [True]


@given(TEXTS)
def test_pieces_end_between_words_and_are_short(text: str) -> None:
    cut = pieces(text)
    for piece in cut[:-1]:
        assert piece.text.endswith(" ")
    if len(text.split()) > 8:
        assert len(cut[0].text.split()) <= 7
        assert all(len(piece.text.split()) <= 9 for piece in cut)


@given(st.text(max_size=30), st.integers(0, 30))
def test_any_text_has_one_last_piece(text: str, start: int) -> None:
    cut = pieces(text, min(start, len(text)))
    assert "".join(piece.text for piece in cut) == text[start:]
    assert cut[-1].last


def test_a_short_reply_is_one_piece() -> None:
    assert pieces("Seven times six is forty two.") == [Piece(0, "Seven times six is forty two.", True)]


def test_a_story_is_written_as_it_is_told() -> None:
    mouth = Mouth()
    mouth.begin(STORIES[0], 1.0)
    written, ahead, ticks = "", 0.0, 0
    while mouth.open:
        due = mouth.tick(0.08)
        ticks += 1
        ahead = max(0.0, ahead - 0.08)
        for piece in due:
            # Nothing more is written while there is enough.
            assert ahead < AHEAD_S
            ahead += seconds(piece.text)
            written += piece.text
        assert ahead > 0, "the voice has run dry"
    assert written == STORIES[0]
    assert ticks * 0.08 > seconds(STORIES[0]) * 0.8


def test_a_slow_voice_is_written_for_slowly() -> None:
    def ticks(rate: float) -> int:
        mouth = Mouth()
        mouth.begin(STORIES[1], rate)
        count = 0
        while mouth.open:
            mouth.tick(0.08)
            count += 1
        return count
    assert ticks(0.5) > 1.8 * ticks(1.0)


def test_the_first_piece_is_written_at_once() -> None:
    mouth = Mouth()
    mouth.begin(STORIES[2], 1.0)
    assert mouth.tick(0.08)[0] == Piece(0, "On a hill above a ", False)


def test_a_stopped_reply_is_over_and_a_closed_one_ends_where_it_is() -> None:
    mouth = Mouth()
    mouth.begin(STORIES[0], 1.0)
    done = sum(len(piece.text) for piece in mouth.tick(0.08))
    assert mouth.close() == Piece(done, "", True)
    assert not mouth.open
    assert mouth.close() is None
    mouth.begin(STORIES[0], 1.0)
    mouth.stop()
    assert mouth.tick(0.08) == []


def test_a_reply_written_to_its_end_before_is_only_closed() -> None:
    mouth = Mouth()
    mouth.begin("Okay.", 1.0, written=5)
    assert mouth.tick(0.08) == [Piece(5, "", True)]
