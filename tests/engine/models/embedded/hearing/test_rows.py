"""What the shipped thinker makes of rows that stand where a word's tokens would."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from duologue.engine.models.embedded.dialogue.policy import Sentence
from duologue.engine.models.embedded.sound import Sound, Sounds
from duologue.engine.models.embedded.thinking.embeddings import embeddings
from duologue.engine.models.embedded.thinking.format import Answer, Call, Heard
from duologue.engine.models.embedded.thinking.model import FOLDER, DecoderOptions, Model, open_model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.thinking.wit import Thought
from duologue.engine.runners.base import Embeddings, Tokens

pytestmark = pytest.mark.component

TABLE = embeddings(FOLDER / "model.safetensors")
SUM, STORY = ("what", "is", "seven", "times", "six"), ("tell", "me", "a", "story", "please")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    opened = open_model(DecoderOptions())
    yield opened
    opened.close()


@pytest.fixture
def record(model: Model) -> Iterator[Record]:
    held = Record(model, "s")
    yield held
    held.close()


def sounds(model: Model, words: tuple[str, ...], blur: float = 0.0) -> Sounds:
    """Words as an encoder hands them over that is sure of them, or takes each for all pieces a little."""
    table = (1 - blur) * TABLE + np.float32(blur) * TABLE.mean(0)
    return tuple(Sound.of(table[list(model.format.vocabulary.encode(word))]) for word in words)


def asked(record: Record, heard: Heard) -> Answer:
    answer = record.ask(heard)
    record.asked = None
    return answer


def test_rows_that_are_the_tokens_embeddings_are_as_good_as_tokens(model: Model, record: Record) -> None:
    for words in (SUM, STORY):
        told = asked(record, Heard(words, 640))
        assert told.call is not None
        assert asked(record, Heard(words, 640, sounds=sounds(model, words))).tokens == told.tokens


def test_what_is_asked_for_is_what_the_rows_say_not_the_words(model: Model, record: Record) -> None:
    answer = asked(record, Heard(SUM, 640, sounds=sounds(model, STORY)))
    assert answer.call is not None
    assert answer.call.name == "story"


def test_what_is_half_sure_is_still_understood(model: Model, record: Record) -> None:
    answer = asked(record, Heard(SUM, 640, sounds=sounds(model, SUM, blur=0.3)))
    assert answer.call == Call("arithmetic", {"left": "seven", "operator": "times", "right": "six"})


def test_the_sequence_holds_the_rows_between_the_unit_and_its_pause(model: Model, record: Record) -> None:
    said = sounds(model, SUM)
    record.replied(0, Heard(SUM, 240, over=True, sounds=(said[0], None, *said[2:])), Call("story", {}), "Once.")
    start, *pieces = model.sessions.sequence("s")
    name = model.format.vocabulary.name
    assert isinstance(start, Tokens)
    assert [name(id) for id in start.ids] == ["<bos>", "<unit>", "<over>"]
    kinds = [piece.key if isinstance(piece, Embeddings) else " ".join(map(name, piece.ids)) for piece in pieces]
    assert kinds[:5] == [said[0].key if said[0] else None, "is", *(each.key for each in said[2:] if each)]
    assert str(kinds[5]).startswith("<pause_240> <|speak|> <call:story>")


def test_the_same_rows_are_the_same_question_and_others_are_another(
        model: Model, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    put: list[str] = []
    answer = model.sessions.generate

    def counted(session: str, *arguments: object, **more: object) -> None:
        put.append(session)
        answer(session, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(model.sessions, "generate", counted)
    record.ask(Heard(SUM, 160, sounds=sounds(model, SUM)))
    record.ask(Heard(SUM, 200, sounds=sounds(model, SUM)))
    assert len(put) == 1
    record.ask(Heard(SUM, 160, sounds=sounds(model, SUM, blur=0.1)))
    assert len(put) == 2


def lived(model: Model, session: str, spoken: bool) -> list[Answer]:
    """The answers in a dialogue so long that it slides, with replies that are cut and undone."""
    record, answers, lengths = Record(model, session), list[Answer](), list[int]()
    for turn in range(24):
        words = (SUM, STORY)[turn % 2]
        heard = Heard(words, 640, sounds=sounds(model, words) if spoken else ())
        answers.append(record.ask(heard))
        record.replied(turn, heard, answers[-1].call, "Seven times six is forty two, once upon a time, and so on.")
        if turn % 3 == 1:
            record.cut(turn, "Seven times")
        if turn % 5 == 4:
            record.undo(turn)
        lengths.append(sum(map(len, model.sessions.sequence(session))))
    assert min(later - earlier for earlier, later in pairwise(lengths)) < -60, "it never slid"
    record.close()
    return answers


def test_rows_that_slide_are_cut_and_undone_leave_the_sequence_that_tokens_would(model: Model) -> None:
    assert lived(model, "rows", spoken=True) == lived(model, "tokens", spoken=False)


def test_two_sentences_said_before_an_answer_keep_their_sounds(model: Model, record: Record) -> None:
    wit = Thought(record)
    said = sounds(model, ("seven", "times"))
    spoken, typed = Sentence("seven times", sounds=said), Sentence("six")
    assert wit.joined(spoken, typed) == Sentence("seven times six", sounds=(*said, None))
    assert wit.joined(spoken, Sentence("mm-hm")) == spoken


def test_a_word_that_is_mended_is_known_as_text_only(model: Model) -> None:
    sentence = Sentence("turn on the line", sounds=sounds(model, ("turn", "on", "the", "line")))
    assert sentence.saying(["turn", "on", "the", "line"]) == sentence
    assert sentence.saying(["turn", "on", "the", "light"]) == Sentence("turn on the light")
