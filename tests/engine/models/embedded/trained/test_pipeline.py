"""A call's engine with the trained voice: what it answers is heard."""

from __future__ import annotations

import numpy as np
import pytest

from duologue.config import DEFAULT_CONFIG, load
from duologue.engine import CallerText, Engine, ReplyAudio
from tests.engine.test_recovery import SilentCaller, ended
from tests.harness import recogniser
from tests.harness.sound import from_pcm

PIPELINE = load(DEFAULT_CONFIG).pipeline
TRAINED = PIPELINE.model_copy(update={
    "admission": PIPELINE.admission.model_copy(update={"target_load": 1.0, "window_units": 1}),
    "stages": tuple(stage.model_copy(update={"options": {"voice": "trained"}}) if stage.role in ("talker", "codec")
                    else stage for stage in PIPELINE.stages)})


@pytest.mark.component
async def test_an_answer_of_the_trained_voice_is_heard() -> None:
    engine = await Engine.start(TRAINED)
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
