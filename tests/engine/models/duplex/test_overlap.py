"""All three stages of the tiny duplex pipeline, overlapped and one after the other."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from duologue.engine import Decision, PipelineConfig, ReplyAudio, ReplyText, TurnEnd, Unit
from duologue.engine.inline import InlineSession
from duologue.engine.messages import EngineEvent, Pcm, TextSpan

TINY = {"load_format": "random", "size": "tiny", "seed": 2}
SPEAKS = {"listen_bias": -100.0, "turn_eos_bias": 1.0, "temperature": 0.0}


def pipeline(*, async_chunk: bool, ramp: bool) -> PipelineConfig:
    return PipelineConfig.model_validate({
        "name": "duplex", "unit_ms": 1000, "output_rate": 24_000, "async_chunk": async_chunk,
        "stages": [
            {"name": "thinker", "role": "thinker", "model": "duplex.thinker", "process": "one",
             "options": {**TINY, "sampling": SPEAKS}},
            {"name": "talker", "role": "talker", "model": "duplex.talker", "process": "one",
             "options": {**TINY, "voice": {"temperature": 0}}},
            {"name": "codec", "role": "codec", "model": "duplex.codec", "process": "one", "options": TINY}],
        "edges": [{"source": "thinker", "target": "talker", "connector": "local"},
                  {"source": "talker", "target": "codec", "connector": "local"}],
        "chunking": {"codec_left_context_frames": 9, "codec_chunk_ramp": ramp}})


@cache
def first_reply(*, async_chunk: bool, ramp: bool) -> list[EngineEvent]:
    """Everything up to the first reply's end; the caller is silent."""
    session = InlineSession(pipeline(async_chunk=async_chunk, ramp=ramp))
    events: list[EngineEvent] = []
    written = False
    for index in range(40):
        if not written:
            session.append(Unit(index, np.zeros(16_000, np.int16), speech=0.0))
        session.settle()
        while (event := session.pop()) is not None:
            events.append(event)
            written = written or (isinstance(event, ReplyText) and event.last)
        if any(isinstance(event, TurnEnd) for event in events):
            break
    session.close()
    return events


def audio(events: list[EngineEvent]) -> Pcm:
    return np.concatenate([event.pcm for event in events if isinstance(event, ReplyAudio)])


def text(events: list[EngineEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReplyText))


def spans(events: list[EngineEvent]) -> list[TextSpan]:
    return [span for event in events if isinstance(event, ReplyAudio) for span in event.spans]


def test_a_reply_is_the_same_to_the_sample_whether_its_stages_overlap_or_not() -> None:
    sequential = first_reply(async_chunk=False, ramp=False)
    overlapped = first_reply(async_chunk=True, ramp=True)
    assert text(overlapped) == text(sequential)
    assert np.array_equal(audio(overlapped), audio(sequential))
    assert spans(overlapped) == spans(sequential)

    units = sum(isinstance(event, Decision) for event in sequential)
    assert units > 1
    # 25 frames of 40 ms for each unit but the last, which ends where the talker ends it.
    assert len(audio(sequential)) >= (units - 1) * 24_000
    first_audio = next(i for i, event in enumerate(overlapped) if isinstance(event, ReplyAudio))
    assert any(isinstance(event, Decision) for event in overlapped[first_audio:])
    last_decision = max(i for i, event in enumerate(sequential) if isinstance(event, Decision))
    assert not any(isinstance(event, ReplyAudio) for event in sequential[:last_decision])


def test_what_is_spoken_is_what_was_written_and_each_unit_speaks_its_own_text() -> None:
    events = first_reply(async_chunk=True, ramp=True)
    whole, told = text(events), spans(events)
    assert "".join(whole[span.start:span.end] for span in told) == "".join(whole.split())
    assert all(before.end <= after.start and before.first_sample <= after.first_sample
               for before, after in pairwise(told))
    units = [event for event in events if isinstance(event, ReplyText)]
    for number, unit in enumerate(units[:-1]):
        mine = [span for span in told if unit.start <= span.start < unit.start + len(unit.text)]
        assert all(number * 24_000 <= span.first_sample <= span.end_sample <= (number + 1) * 24_000 for span in mine)
