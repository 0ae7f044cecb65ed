"""The stream a talker learns from is the one it later speaks in."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.engine.models.embedded.voice.pointer import END, Pointer
from duologue.engine.models.embedded.voice.symbols import BOS, BOUNDARY, EOS, ID, PHONES, SYMBOLS, WORD, WORD_END
from duologue.engine.models.embedded.voice_format import VECTOR_WIDTH
from training.voice.corpus import SpokenWord, Utterance
from training.voice.sequence import FRAME_S, NOTHING, build

_WORD = st.lists(st.tuples(st.sampled_from(PHONES), st.floats(0.03, 0.4)), min_size=1, max_size=8)


def utterance(words: list[list[tuple[str, float]]], pauses: list[float]) -> Utterance:
    made, now = [], 0.04
    for word, pause in zip(words, pauses, strict=False):
        ends = now + np.cumsum([length for _, length in word])
        now = float(ends[-1]) + pause
        made.append(SpokenWord(tuple(phone for phone, _ in word), tuple(ends.tolist()), now, "," if pause else ""))
    return Utterance(np.zeros((int(now / FRAME_S) * 8, VECTOR_WIDTH), np.float32), tuple(made))


@settings(deadline=None)
@given(st.lists(_WORD, min_size=1, max_size=6), st.lists(st.sampled_from([0.0, 0.1, 0.3]), min_size=6, max_size=6))
def test_the_pointer_that_is_learnt_is_the_pointer_that_speaks(
        words: list[list[tuple[str, float]]], pauses: list[float]) -> None:
    said = utterance(words, pauses)
    frames = len(said.vectors) // 8
    rows = build(said, frames)
    text = [[*(ID[phone] for phone in word.phones), ID[BOUNDARY + word.mark]] for word in said.words]
    at = iter(range(len(rows.symbol)))
    assert rows.symbol[next(at)] == ID[BOS]
    assert [rows.symbol[next(at)] for _ in text[0]] == text[0]
    spoken = 0
    for word, after in zip(text, [*text[1:], [ID[EOS]]], strict=True):
        assert [rows.symbol[next(at)] for _ in after] == after
        row, pointer = next(at), Pointer(word, after[0])
        assert rows.symbol[row] == ID[WORD]
        while True:
            position = pointer.position
            assert (rows.phone[row], rows.following[row], rows.held[row]) == (
                position.phone, position.following, position.held)
            move = rows.advance[row]
            if move == END:
                break
            wanted = np.full(END + 1, -1, np.float32)
            wanted[move] = 1
            assert pointer.move(wanted)
            row = next(at)
            assert rows.symbol[row] == NOTHING
            assert rows.frame[row] == spoken
            spoken += 1
        assert rows.symbol[next(at)] == ID[WORD_END]
    assert next(at, None) is None
    assert spoken == frames


def test_every_symbol_has_one_number() -> None:
    assert len(set(SYMBOLS)) == len(ID) == len(SYMBOLS)
