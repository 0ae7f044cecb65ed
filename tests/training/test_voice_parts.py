"""With its own times given back to it, the talker says what it said by itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from duologue.engine.models.embedded.voice.pointer import MAX_HELD
from duologue.engine.models.embedded.voice.symbols import BOS, EOS, ID, WORD, WORD_END
from duologue.engine.models.embedded.voice.utterance import to_codes
from training.voice.parts import timed
from training.voice.sequence import NOTHING, Sequence
from training.voice.voices import Trained


def rows_of(text: str, voice: Trained) -> tuple[Sequence, NDArray[np.int32]]:
    """The stream that the talker itself makes of a sentence, and its codes."""
    rows, codes, frame = [(ID[BOS], NOTHING, 0, 0, 0, NOTHING)], [], 0
    said = [(word.symbols, spoken) for word, spoken in voice.words(text)]
    for i, (own, spoken) in enumerate(said):
        after = said[i + 1][0] if i + 1 < len(said) else (ID[EOS],)
        rows += [(symbol, NOTHING, 0, 0, 0, NOTHING) for symbol in ([*own, *after] if not i else after)]
        rows.append((ID[WORD], NOTHING, own[0], [*own, *after][1], 0, NOTHING))
        held, before = 0, 0
        for place in spoken.places:
            held = 0 if place != before else min(held + 1, MAX_HELD)
            before = place
            rows.append((NOTHING, frame, own[place], [*own, *after][place + 1], held, NOTHING))
            frame += 1
        rows.append((ID[WORD_END], NOTHING, 0, 0, 0, NOTHING))
        codes.append(spoken.codes)
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)]
    return Sequence(*columns), np.concatenate(codes)


@pytest.mark.component
def test_the_talker_at_its_own_times_says_what_it_said() -> None:
    voice = Trained()
    rows, codes = rows_of("We had breakfast, under an old tree.", voice)
    assert np.array_equal(to_codes(timed(voice.network, rows)), codes)
