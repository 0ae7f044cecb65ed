"""The weights in the package: an independent recogniser understands them, where the spans say."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.engine.messages import CodecFrames, Pcm, ReplyAudio, TextSpan
from duologue.engine.models.embedded import codec, talker
from duologue.engine.models.embedded.voice import weights
from duologue.engine.models.embedded.voice.pronouncer import LEXICON
from tests.engine.models.embedded.test_talker_intelligibility import COUNTING, errors, words
from tests.engine.models.embedded.voice import delta, opened, pipeline
from tests.harness import recogniser
from tests.harness.sound import from_pcm

TEXT = ("The children were playing football in the street. Please remember to take your umbrella with you. "
        "It was raining when we arrived at the airport. We had breakfast in the garden under an old apple tree. "
        "Nobody understood the consequences of that decision. Congratulations on your anniversary!")


def said(text: str, rate: float = 1.0) -> tuple[Pcm, list[TextSpan]]:
    """The text, eleven characters at a time, through both stages as a config makes them."""
    first, second = talker.create({"voice": "trained"}, pipeline()), codec.create({"voice": "trained"}, pipeline())
    audio: list[ReplyAudio] = []
    for stage in (first, second):
        stage.receive(opened("a"))
    for at in range(0, len(text), 11):
        first.receive(delta(text[at:at + 11], at, last=at + 11 >= len(text), rate=rate))
        while first.ready:
            for frames in first.step():
                assert isinstance(frames, CodecFrames)
                second.receive(frames)
        while second.ready:
            audio += [made for made in second.step() if isinstance(made, ReplyAudio)]
    return np.concatenate([made.pcm for made in audio]), [span for made in audio for span in made.spans]


@pytest.mark.component
@pytest.mark.parametrize(("rate", "worst"), [(1.0, 0.1), (0.8, 0.15), (1.25, 0.15)])
def test_the_voice_is_understood_at_any_pace_and_keeps_it(rate: float, worst: float) -> None:
    pcm, _ = said(TEXT, rate)
    wanted = words(TEXT)
    assert errors(wanted, words(recogniser.text(from_pcm(pcm), 16_000))) <= worst * len(wanted)
    seconds = len(pcm) / 16_000
    # The source voice says two and a half words a second.
    assert seconds * rate == pytest.approx(len(wanted) / 2.5, rel=0.2)


@pytest.mark.component
def test_counting_is_heard_number_for_number_where_the_spans_say() -> None:
    pcm, spans = said(COUNTING)
    heard = recogniser.counted(from_pcm(pcm), 16_000)
    assert [number for number, _ in heard] == list(range(1, 21))
    # 150 ms: a soft sound after a pause begins where the recogniser thinks it does.
    for span, (_, word) in zip(spans, heard, strict=True):
        assert word.start == pytest.approx(span.first_sample, abs=2400)
        assert word.end == pytest.approx(span.end_sample, abs=2400)


def test_the_weights_are_small_enough_for_a_repository() -> None:
    assert sum((weights.FOLDER / name).stat().st_size for name in (weights.FILE, LEXICON)) <= 12e6
