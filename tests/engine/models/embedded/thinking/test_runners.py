"""The shipped thinker chooses the same tokens whatever runs it."""

from __future__ import annotations

from typing import Any

import pytest

from duologue.engine.models.embedded.hearing.opening import Listeners
from duologue.engine.models.embedded.hearing.transcript import Spoken
from duologue.engine.models.embedded.thinking.format import Answer, Heard
from duologue.engine.models.embedded.thinking.model import FOLDER, DecoderOptions, Model, open_model
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from tests.engine.models.embedded.caller import speech

pytestmark = pytest.mark.component

SAID = ("hello there", "what is seven times six", "convert five miles to kilometers", "remind me to", "who made you",
        "the stone was lying in the river", "count to twenty by five", "stop", "my name is anna", "tell me a story")


def spoken(text: str) -> Heard:
    """What the neural encoder hands over of a sentence."""
    listener = Listeners(Vocabulary.read(FOLDER / "tokenizer.json"), FOLDER)()
    listener.feed(speech("awb", text))
    words = [word for word in listener.finish().words if isinstance(word, Spoken)]
    return Heard(tuple(word.word for word in words), 640, sounds=tuple(word.sound for word in words))


def answers(model: Model) -> list[Answer]:
    """The answers to the sentences of a dialogue after two silences each, in a sequence that grows and is cut back."""
    form, sessions = model.format, model.sessions
    sessions.open("s", form.prefix)
    found = []
    for text in SAID:
        words = tuple(text.split())
        for heard in (Heard(words, 80), Heard(words, 0, over=True), Heard(words, 640)):
            mark = sessions.mark("s")
            found.append(model.answer("s", heard))
            sessions.rollback("s", mark)
        sessions.record("s", (form.unit(heard),), found[-1].tokens, len(found[-1].tokens))
    # Rows behind tokens, and rows behind rows.
    for heard in (spoken("count to fifty"), spoken("what is the square root of nine")):
        found.append(model.answer("s", heard))
    model.close()
    return found


@pytest.mark.parametrize(("runner", "options"), [
    ("torch", {}), ("vllm", {"max_model_len": 512, "max_num_seqs": 2, "kv_positions": 2048, "enforce_eager": True})])
def test_other_runners_choose_what_the_light_one_does(runner: str, options: dict[str, Any]) -> None:
    light = answers(open_model(DecoderOptions()))
    assert len({answer.tokens for answer in light}) > len(SAID)
    other = DecoderOptions.model_validate({"runner": runner, "options": options})
    found = answers(open_model(other))
    assert [answer.tokens for answer in found] == [answer.tokens for answer in light]
    assert [answer.likelihood for answer in found] == pytest.approx([answer.likelihood for answer in light], abs=1e-3)
    assert 0 < min(answer.likelihood for answer in light) < 0.99
