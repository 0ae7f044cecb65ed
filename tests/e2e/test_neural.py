"""A call whose audio reaches the thinker as rows of its embeddings: through a real browser, on its own stage config."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.interrupted_count import replies_after
from tests.e2e.test_conversations import talk
from tests.harness.microphone import Microphone
from tests.harness.recogniser import fit, number_words
from tests.harness.server import running_server
from tests.harness.sound import RATE

pytestmark = pytest.mark.e2e


async def test_a_caller_who_is_heard_as_rows_gets_the_root_and_stops_the_count(tmp_path: Path) -> None:
    microphone = (Microphone("awb").pause(7).say("what is the square root of nine").pause(7)
                  .say("count to fifty").pause(6).say("stop").pause(3))
    async with running_server(tmp_path, "stage_configs/embedded-neural.yaml") as server:
        recording = await talk(server, microphone)
        assert await server.metric_reaches("duologue_calls_live", 0)
    root, _, _ = replies_after(recording, said := recording.said(microphone))
    told = fit(recording.agent[root.start:root.end], "the square root of nine is <number>", RATE)
    assert number_words(told) == [9, 3], recording.dialogue()
    cut, = (event for event in recording.of_type("duologue.reply.heard") if event.at > said[2].start)
    assert cut.body["heard_text"].startswith("One, two"), recording.dialogue()
