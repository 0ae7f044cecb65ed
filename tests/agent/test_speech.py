"""Speech outside of calls: a text in pieces, and the sound of each in its order."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duologue.agent.speech import PIECE_CHARS, Speech, SpeechFailed, pieces
from duologue.engine import Fence, Pcm, ReplyAudio, SpeechSession, TurnEnd, TurnStatus
from tests.agent.test_call import ScriptedSession


class ScriptedVoice(ScriptedSession):
    """Says each text as two samples of its number, until it is told to fail."""

    def __init__(self, fails_at: int = -1, *, closes: bool = False) -> None:
        super().__init__()
        self.said: list[tuple[str, float]] = []
        self._fails_at = fails_at
        self._closes = closes

    def say(self, text: object, pace: float = 1.0) -> None:  # type: ignore[override]
        turn = len(self.said)
        self.said.append((str(text), pace))
        if turn == self._fails_at:
            if self._closes:
                self._queue.put_nowait(None)
            else:
                self.emit(TurnEnd("s", 0, turn, TurnStatus.FAILED, "", "the codec died"))
            return
        for seq, size in enumerate((1, 0, 1)):
            self.emit(ReplyAudio(Fence("s", 0, turn, seq), seq, np.full(size, turn, np.int16), last=seq == 2))
        self.emit(TurnEnd("s", 0, turn, TurnStatus.DONE, ""))


def speech(session: ScriptedVoice, text: str) -> Speech:
    return Speech(cast(SpeechSession, session), text, 1.5, 16_000)


async def sounds(made: Speech, heard: list[Pcm]) -> list[int]:
    async for pcm in made.sound():
        assert pcm.size
        heard.append(pcm)
    return [int(sample) for pcm in heard for sample in pcm]


@given(st.text(st.sampled_from("aé. \n?中"), max_size=3000))
def test_pieces_make_the_text_and_none_is_too_long_or_empty(text: str) -> None:
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= PIECE_CHARS for part in parts)


@given(st.lists(st.text(st.sampled_from("abc"), min_size=1, max_size=12), min_size=1, max_size=600))
def test_no_word_is_cut_where_there_is_space(words: list[str]) -> None:
    assert [word for part in pieces(" ".join(words)) for word in part.split()] == words


def test_a_piece_ends_with_a_sentence_where_one_ends() -> None:
    text = "This is a sentence, number three point 1.5 of some. " * 40
    assert all(part.endswith("some. ") for part in pieces(text))


async def test_the_pieces_are_said_one_after_the_other() -> None:
    session, text = ScriptedVoice(), "One sentence. " * 100
    assert await sounds(speech(session, text), []) == [0, 0, 1, 1, 2, 2]
    assert [piece for piece, _ in session.said] == list(pieces(text))
    assert {pace for _, pace in session.said} == {1.5}


@pytest.mark.parametrize(("closes", "why"), [(False, "the codec died"), (True, "closed")])
async def test_what_cannot_be_said_ends_the_sound_with_its_reason(closes: bool, why: str) -> None:
    session, heard = ScriptedVoice(1, closes=closes), list[Pcm]()
    with pytest.raises(SpeechFailed, match=why):
        await sounds(speech(session, "One sentence. " * 100), heard)
    assert [pcm.tolist() for pcm in heard] == [[0], [0]]
    assert len(session.said) == 2
