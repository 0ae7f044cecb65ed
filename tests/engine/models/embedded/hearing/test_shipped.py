"""The shipped encoder before the shipped thinker: a caller who is heard as rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from duologue.engine.config import ConfigError
from duologue.engine.messages import AgentSaid, CallerSaid
from duologue.engine.models.embedded.hearing.opening import FILE, Listeners
from duologue.engine.models.embedded.thinker import Thinker, create
from duologue.engine.models.embedded.thinking.model import FOLDER
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from duologue.engine.runners.base import Embeddings
from tests.engine.models.embedded.caller import PIPELINE, SAMPLES, Caller, speech, understood

OPTIONS = {"wit": "trained", "hearing": "neural"}


@pytest.fixture(scope="module")
def stage() -> Thinker:
    return create(OPTIONS, PIPELINE)


def last(caller: Caller) -> str:
    return list(caller.texts.values())[-1]


@pytest.mark.component
def test_a_spoken_sum_is_heard_as_rows_and_answered(stage: Thinker) -> None:
    caller = Caller(stage, "sum")
    caller.until_quiet()
    caller.say(speech("awb", "what is the square root of nine"))
    outputs = caller.until_quiet()
    assert understood(outputs) == ["what is the square root of nine"]
    assert last(caller) == "The square root of nine is three."
    record = stage._minds["sum"]._dialogue._wit._record  # type: ignore[attr-defined]
    sequence = record._model.sessions.sequence("sum")
    assert sum(isinstance(piece, Embeddings) for piece in sequence) == 7
    caller.hang_up()


@pytest.mark.component
def test_a_lone_stop_silences_a_count(stage: Thinker) -> None:
    caller = Caller(stage, "stop")
    caller.until_quiet()
    caller.say(speech("awb", "count to fifty"))
    caller.silence(40)
    caller.say(speech("awb", "stop"))
    caller.silence(12)
    assert any(decision.yields for decision in caller.decisions)
    assert caller.texts[max(caller.cut)].startswith("One, two")
    caller.hang_up()


@pytest.mark.component
def test_a_session_that_is_rebuilt_goes_on_with_the_words_it_heard(stage: Thinker) -> None:
    history = (AgentSaid(0, "Hello."), CallerSaid("what is seven times six"),
               AgentSaid(1, "Seven times six is forty two."))
    caller = Caller(stage, "again", next_turn=2, next_unit=100, decided=100, history=history)
    caller.silence(8)
    caller.say(speech("awb", "what was the last number you said"))
    caller.until_quiet()
    assert "orty two" in last(caller)
    caller.hang_up()


@pytest.mark.component
def test_callers_who_speak_at_once_are_heard_apart(stage: Thinker) -> None:
    callers = [Caller(stage, name) for name in ("first", "second")]
    for caller in callers:
        caller.until_quiet()
    sum_, story = (speech("awb", text) for text in ("what is the square root of nine", "tell me a story"))
    for at in range(0, max(len(sum_), len(story)), SAMPLES):
        for caller, pcm in zip(callers, (sum_, story), strict=True):
            unit = pcm[at:at + SAMPLES]
            caller.unit(np.pad(unit, (0, SAMPLES - len(unit))))
    for caller in callers:
        caller.until_quiet()
    assert last(callers[0]) == "The square root of nine is three."
    assert len(last(callers[1]).split()) > 40
    for caller in callers:
        caller.hang_up()


def test_rows_without_a_thinker_that_reads_them_are_refused() -> None:
    with pytest.raises(ConfigError, match="hearing: neural gives rows that only a trained thinker reads"):
        create({"wit": "rules", "hearing": "neural"}, PIPELINE)


def test_a_package_without_the_weights_is_told_apart(tmp_path: Path) -> None:
    vocabulary = Vocabulary.read(FOLDER / "tokenizer.json")
    with pytest.raises(ConfigError, match=r"needs .*hearing\.safetensors .*install the package whole"):
        Listeners(vocabulary, FOLDER, tmp_path / "hearing.safetensors")
    (tmp_path / "model.safetensors").write_bytes(b"none")
    with pytest.raises(ConfigError, match="embeddings cannot be read"):
        Listeners(vocabulary, tmp_path)


def test_the_weights_are_small() -> None:
    assert FILE.stat().st_size <= 5_600_000
    assert sum(file.stat().st_size for file in FILE.parent.rglob("*") if file.is_file()) <= 32_000_000
