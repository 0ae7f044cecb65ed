"""A call from a real browser to MiniCPM-o 4.5's whole path, on random weights of a tiny size."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.harness.browser import browser_call
from tests.harness.microphone import Microphone
from tests.harness.recording import Recording
from tests.harness.server import running_server
from tests.harness.sound import RATE

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / "duologue" / "stage_configs" / "minicpmo-random.yaml"
FORCED_TO_LISTEN = 3
"""Units at the start of a session, as released."""


def caller() -> Microphone:
    """Somebody who goes on speaking: random weights speak most of the time, so that some of it is over a reply."""
    microphone = Microphone().pause(4)
    for sentence in ("could you tell me about the weather in the morning and in the evening and at night",
                     "please wait a moment and let me say what I want to know about all of these things",
                     "now stop talking for a while because there is something else I have to tell you"):
        microphone.say(sentence).pause(6)
    return microphone


def impatient(folder: Path) -> str:
    """The shipped config, in which less speech makes an interruption."""
    config = yaml.safe_load(SHIPPED.read_text())
    config["conversation"] = {"barge_in": {"confirm_ms": 400, "echo_guard_ms": 0}}
    path = folder / "impatient.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def said(recording: Recording, item: str) -> str:
    """The text of a reply as the page was told it."""
    return "".join(event.body["delta"] for event in recording.of_type("response.output_audio_transcript.delta")
                   if event.body["item_id"] == item)


async def test_a_caller_hears_minicpmo_interrupts_it_and_hears_it_again(tmp_path: Path) -> None:
    microphone = caller()
    async with running_server(tmp_path, impatient(tmp_path)) as server:
        async with browser_call(server.url, microphone) as call:
            recording = await call.until_sample(microphone.length)
            await call.hang_up()
        assert await server.metric_reaches("duologue_calls_live", 0)
        assert '"level": "error"' not in server.log()
    decisions = [event.body for event in recording.of_type("duologue.decision")]
    assert [each["unit"] for each in decisions] == list(range(len(decisions)))
    assert [each["choice"] for each in decisions[:FORCED_TO_LISTEN]] == ["listen"] * FORCED_TO_LISTEN
    assert recording.replies(), recording.dialogue()
    assert not recording.of_type("error")

    cuts = [event for event in recording.of_type("duologue.reply.heard") if event.body["interrupted"]]
    assert cuts, recording.dialogue()
    for cut in cuts:
        assert said(recording, cut.body["item_id"]).startswith(cut.body["heard_text"])
        late = [event for event in recording.of_type("duologue.reply.words")
                if event.body["item_id"] == cut.body["item_id"] and event.at > cut.at + RATE]
        assert not late, "words of a reply were played after it was cut"
    created = recording.of_type("response.created")
    assert any(event.at > cuts[0].at for event in created), "it never spoke again"

    for item in {event.body["item_id"] for event in recording.of_type("duologue.reply.words")}:
        words = [word for event in recording.of_type("duologue.reply.words") if event.body["item_id"] == item
                 for word in event.body["words"]]
        assert all(one["end"] <= next_["start"] and one["end_ms"] <= next_["start_ms"]
                   for one, next_ in pairwise(words)), "a word was lost or spoken twice"
