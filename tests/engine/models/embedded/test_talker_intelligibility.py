"""An independent recogniser understands the embedded voice about as well as flite's own waveform."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.models.embedded.flite_alone import flite_alone
from tests.engine.models.embedded.voice import say
from tests.harness import recogniser
from tests.harness.sound import from_pcm

SENTENCES = (
    "Hello there, how can I help you today?",
    "The box was thrown beside the parked truck.",
    "The last number I said was seven.",
    "Environmental protection is an international responsibility.",
    "She went to the university to study mathematics and engineering.",
)
COUNTING = ("One, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, "
            "fifteen, sixteen, seventeen, eighteen, nineteen, twenty.")


def words(text: str) -> list[str]:
    return "".join(char if char.isalpha() else " " for char in text.lower()).split()


def errors(wanted: list[str], heard: list[str]) -> int:
    """Words put in, left out or changed: Levenshtein's distance."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(wanted):
        above, row = row, [i + 1]
        for j, other in enumerate(heard):
            row.append(min(row[j] + 1, above[j + 1] + 1, above[j] + (word != other)))
    return row[-1]


@pytest.mark.component
def test_the_voice_is_as_clear_as_flites_own_waveform(tmp_path: Path) -> None:
    ours = theirs = total = 0
    for sentence in SENTENCES:
        wanted = words(sentence)
        total += len(wanted)
        ours += errors(wanted, words(recogniser.text(from_pcm(say(sentence, 9).pcm), 16_000)))
        theirs += errors(wanted, words(recogniser.text(from_pcm(flite_alone(sentence, tmp_path).pcm), 16_000)))
    assert ours / total <= max(theirs / total + 0.05, 0.1)


@pytest.mark.component
@pytest.mark.parametrize("size", [7, 1000])
def test_counting_is_heard_number_for_number_where_the_spans_say(size: int) -> None:
    said = say(COUNTING, size)
    heard = recogniser.counted(from_pcm(said.pcm), 16_000)
    assert [number for number, _ in heard] == list(range(1, 21))
    for span, (_, word) in zip(said.spans, heard, strict=True):
        assert word.start == pytest.approx(span.first_sample, abs=1600)
        assert word.end == pytest.approx(span.end_sample, abs=1600)
