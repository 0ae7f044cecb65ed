"""A call's engine with each of its voices: what it answers is heard."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.config import DEFAULT_CONFIG, load
from duologue.engine import CallerText, Engine, PipelineConfig, ReplyAudio
from tests.engine.test_recovery import SilentCaller, ended
from tests.harness import recogniser
from tests.harness.sound import from_pcm


def spoken_by(voice: str) -> PipelineConfig:
    shipped = load(DEFAULT_CONFIG).pipeline
    return shipped.model_copy(update={
        "admission": shipped.admission.model_copy(update={"target_load": 1.0, "window_units": 1}),
        "stages": tuple(stage.model_copy(update={"options": {"voice": voice}})
                        if stage.role in ("talker", "codec") else stage for stage in shipped.stages)})


@pytest.mark.component
@pytest.mark.parametrize("voice", ["rms", "trained"])
async def test_an_answer_is_heard(voice: str) -> None:
    engine = await Engine.start(spoken_by(voice))
    try:
        caller = SilentCaller(engine.open())
        await caller.until(ended)
        caller.session.inject(CallerText("what is four plus five"))
        await caller.until(ended)
        sound = np.concatenate([event.pcm for event in caller.events
                                if isinstance(event, ReplyAudio) and event.fence.turn == 1])
        assert recogniser.text(from_pcm(sound), 16_000).startswith("four plus five is ")
    finally:
        await engine.close()
