"""MiniCPM-o's thinker as a stage: what a caller's units, interruptions and requests do to its sequence."""

from __future__ import annotations

import logging
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duologue.engine import Choice, ConfigError
from duologue.engine.messages import AgentSaid, Respond, SessionFailed
from duologue.engine.models.minicpmo import thinker
from duologue.engine.runners.base import Embeddings, Tokens
from tests.engine.models.minicpmo.stage import SAMPLES, TOKENIZER, Session, T, create, sound
from tests.engine.scripted import pipeline

TALKS = 0
"""Seed of a model that speaks at once, in replies of several units."""
LISTENS = 3
"""Seed of one that listens for ten units."""


def heard(session: Session) -> int:
    """Rows of audio in the sequence."""
    return sum(len(piece) for piece in session.pieces if isinstance(piece, Embeddings))


def test_a_unit_is_its_marker_ten_rows_and_its_answer_which_is_closed_with_it() -> None:
    session = Session(create(seed=TALKS))
    session.say(4)
    _, *rest = session.pieces
    assert [len(piece) for piece in session.pieces if isinstance(piece, Embeddings)] == [10] * 4
    tokens = [piece.ids for piece in rest if isinstance(piece, Tokens)]
    answers = [each.tokens for each in session.decisions]
    assert tokens == [*((*answer, T.unit_end, T.unit) for answer in answers[:-1]), (*answers[-1], T.unit_end)]


def test_texts_and_states_are_of_all_tokens_but_the_first_and_the_last() -> None:
    session = Session(create(seed=TALKS))
    session.say(8)
    assert {text.last for text in session.texts} == {True, False}
    for turn in sorted({text.fence.turn for text in session.texts})[:-1]:
        told = [text for text in session.texts if text.fence.turn == turn]
        given = [id for text in told if text.conditioning is not None for id in text.conditioning.tokens]
        assert given == [id for each in session.decisions if each.turn == turn for id in each.tokens[1:-1]]
        assert given[-1] == T.turn_eos
        assert all(text.conditioning.rows.any(axis=1).all() for text in told if text.conditioning is not None)
        assert "".join(text.text for text in told) == TOKENIZER.decode(given)


def test_a_unit_of_a_reply_without_a_word_is_told_too() -> None:
    session = Session(create(seed=1))
    session.say(12)
    told = {text.fence.turn for text in session.texts}
    for turn in told:
        pieces = [text for text in session.texts if text.fence.turn == turn]
        units = [each for each in session.decisions if each.turn == turn and each.choice is Choice.SPEAK]
        assert len(pieces) == len(units)
    silent = [text for text in session.texts if not text.text and not text.last]
    assert silent
    assert {len(text.conditioning.tokens) for text in silent if text.conditioning is not None} <= {0, 1}
    assert all(text.conditioning is not None for text in silent)


def test_a_barge_in_leaves_what_was_heard_and_the_request_lives_on() -> None:
    stage = create(seed=TALKS)
    session = Session(stage)
    session.say(2)
    before, rows = session.answers, heard(session)
    kept = stage._sessions._sessions["s"].cached
    text = "".join(each.text for each in session.texts)
    session.interrupt(0, text[:len(session.texts[0].text) + 3])
    # The playhead was in the second unit: the first stays, the second ends the reply at its third character.
    assert session.answers[0] == before[0]
    cut = session.answers[1]
    assert cut[-2:] == (T.turn_eos, T.chunk_eos)
    assert cut[:-2] == before[1][:len(cut) - 2]
    assert TOKENIZER.decode(list(cut[1:-2])) in session.texts[1].text[:3]
    # The caller's audio stays, and so does the KV of everything before the cut.
    assert heard(session) == rows
    assert stage._runner.keepable("s", kept) >= kept - len(before[1])
    session.say()
    assert [each.unit for each in session.decisions] == [0, 1, 2]
    assert (session.decisions[-1].epoch, session.decisions[-1].turn) == (1, 1)


def test_a_session_that_is_opened_again_goes_on_as_if_nothing_had_been() -> None:
    session = Session(create(seed=TALKS))
    session.say(5)
    session.interrupt(1, session.texts[3].text)
    session.say(2)
    history: dict[int, AgentSaid] = {}
    for text in session.texts:
        said = history.get(text.fence.turn, AgentSaid(text.fence.turn, ""))
        history[text.fence.turn] = AgentSaid(text.fence.turn, said.text + text.text, not text.last)
    history[1] = AgentSaid(1, session.texts[3].text, cut=1)
    again = Session(create(seed=TALKS), epoch=1, decided=7, outputs=session.decided, next_turn=max(history) + 1,
                    history=tuple(history[turn] for turn in sorted(history)))
    for _ in range(7):
        again.give()
    again.settle()
    assert again.out == []
    for each in (session, again):
        each.say(2)
    assert [each.tokens for each in again.decisions] == [each.tokens for each in session.decisions[-2:]]
    assert again.answers == session.answers


def test_in_turn_mode_it_listens_until_it_is_asked_and_speaks_by_the_cap() -> None:
    session = Session(create(seed=LISTENS, floor={"respond_within": 3}), auto_respond=False)
    session.say(3)
    session.stage.receive(Respond("s", 0))
    # A commit: the tail of the caller's audio is padded with silence to a unit, and one more follows it.
    padded = sound(3)
    padded[SAMPLES // 3:] = 0
    session.give(padded)
    for _ in range(6):
        session.give(np.zeros(SAMPLES, np.int16))
    session.settle()
    assert [each.tokens for each in session.decisions[:3]] == [(T.listen,)] * 3
    # Free at first, it says nothing.
    assert [each.choice for each in session.decisions[3:5]] == [Choice.LISTEN] * 2
    assert session.decisions[5].tokens[0] == T.speak
    assert session.texts
    talker = Session(create(seed=TALKS), auto_respond=False)
    talker.say(4)
    assert talker.spoken == []
    talker.stage.receive(Respond("s", 0))
    talker.say(8)
    assert talker.spoken == list(range(4, 4 + len(talker.spoken)))
    assert len({text.fence.turn for text in talker.texts}) == 1


def test_a_session_only_listens_in_its_first_three_units() -> None:
    free, session = Session(create(seed=TALKS)), Session(create({"force_listen_count": 3}, seed=TALKS))
    free.say()
    session.say(10)
    assert free.spoken == [0]
    assert [each.tokens for each in session.decisions[:3]] == [(T.listen,)] * 3
    assert session.spoken


def test_sessions_that_are_heard_together_answer_as_each_would_alone() -> None:
    stage, alone = create(seed=TALKS), Session(create(seed=TALKS), "b")
    first, second = Session(stage, "a"), Session(stage, "b")
    first.say(2)
    for _ in range(3):
        first.give()
        second.give()
        first.settle()
    alone.say(3)
    answered = [each.tokens for each in first.decisions if each.session == "b"]
    assert answered == [each.tokens for each in alone.decisions]


# --- voices and options -------------------------------------------------------------------------------------


@pytest.fixture
def voice(tmp_path: Path) -> Path:
    file = tmp_path / "anna.wav"
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(SAMPLES)
        out.writeframes(np.concatenate([sound(1), sound(2)]).tobytes())
    return file


def test_a_voice_that_is_not_there_is_the_default_one_and_that_is_logged(
        voice: Path, caplog: pytest.LogCaptureFixture) -> None:
    stage = create(voices={"anna": str(voice)})
    named, other = Session(stage, "a", voice="anna"), Session(stage, "b", voice="marin")
    with caplog.at_level(logging.WARNING):
        other.say()
    named.say()
    for session in (named, other):
        before, clip, *_ = session.pieces
        assert isinstance(clip, Embeddings)
        assert len(clip) == 20
        assert TOKENIZER.decode(list(before.ids[-2:]), skip_special_tokens=False) == "\n<|audio_start|>"
    without = Session(create(), "c", voice="marin")
    without.say()
    assert heard(without) == 10


@pytest.mark.parametrize(("options", "says"), [
    ({"sampling": {"listen_scale": 1}}, "listen_scale"),
    ({"floor": {"respond_within": 0}}, "respond_within"),
    ({"ear": {"device": "tpu"}}, "device is 'tpu'"),
    ({"window": {"high": 10**6}}, "window.high"),
    ({"load_format": "safetensors"}, "checkpoint"),
])
def test_options_that_cannot_be_used_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        thinker.create({"load_format": "random", **options}, pipeline("a", "a", "a", unit_ms=1000))


def test_units_of_another_length_than_the_checkpoints_are_refused() -> None:
    with pytest.raises(ConfigError, match="unit_ms is 80, but the checkpoint's units are of 1000 ms"):
        thinker.create({"load_format": "random"}, pipeline("a", "a", "a"))


def test_a_unit_that_is_not_whole_fails_its_session_alone() -> None:
    stage = create(seed=TALKS)
    broken, whole = Session(stage, "broken"), Session(stage, "whole")
    broken.give(sound(0)[:SAMPLES // 2])
    whole.say()
    assert [each.detail for each in whole.out if isinstance(each, SessionFailed)] \
        == ["ValueError: a unit is 16000 samples, but unit 0 has 8000"]
    assert len(whole.decisions) == 1
