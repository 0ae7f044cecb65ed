"""People who call the real server from its own page in a real browser: what they ask, and what they hear."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest
import yaml

from duologue.config import DEFAULT_CONFIG
from tests.e2e.interrupted_count import check, cut_at, heard, replies_after, spoken
from tests.harness.answers import number_in
from tests.harness.browser import browser_call
from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.peer import peer_call
from tests.harness.recording import Recording
from tests.harness.server import ServerProcess, running_server
from tests.harness.sound import RATE, spans

pytestmark = pytest.mark.e2e

SHIPPED = Path(__file__).parents[2] / "duologue" / DEFAULT_CONFIG
UNITS_PER_S = 12.5
"""Of the embedded pipeline (80 ms)."""


async def talk(server: ServerProcess, microphone: Microphone, network: ImpairedNetwork | None = None) -> Recording:
    """Play the whole microphone to the server, wait for the last reply to end, hang up."""
    async with browser_call(server.url, microphone, network) as call:
        so_far = await call.until_sample(microphone.length + 2 * RATE)
        # In a thread, as everything that takes time: another caller's microphone may be run from this loop.
        last = (await asyncio.to_thread(so_far.said, microphone))[-1]
        recording = await call.until_answered(last.end)
        await call.hang_up()
        return recording


def hospitable(folder: Path) -> str:
    """The shipped config, with room for a caller whenever the last unit was quick."""
    config = yaml.safe_load(SHIPPED.read_text())
    config["pipeline"]["admission"] = {"target_load": 1.0, "window_units": 1}
    path = folder / "hospitable.yaml"
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def keep_asking(server: ServerProcess, done: asyncio.Event) -> tuple[list[bool], Recording]:
    """A second caller who asks one thing after another until ``done``: which answers were right."""
    right = []
    questions = itertools.cycle([("what is six plus nine", 15), ("what is ten minus two", 8)])
    async with peer_call(server.url, Microphone("kal16"), patience_s=30) as call:
        await call.until_answered(0)
        while not done.is_set():
            question, answer = next(questions)
            asked = await call.say(question)
            recording = await call.until_answered(asked.end)
            number = await asyncio.to_thread(number_in, recording.agent[asked.end :])
            right.append(number == answer)
        return right, call.recording()


async def test_an_interrupted_agent_knows_what_was_heard_and_another_call_notices_nothing(tmp_path: Path) -> None:
    microphone = spoken()
    async with running_server(tmp_path, hospitable(tmp_path)) as server:
        done = asyncio.Event()
        other = asyncio.create_task(keep_asking(server, done))
        try:
            recording = await talk(server, microphone)
        finally:
            done.set()
        right, calm = await other
        assert await server.metric_reaches("duologue_calls_live", 0)

        assert check(recording, microphone) == cut_at(recording, microphone)

        assert len(right) >= 2
        assert all(right), calm.dialogue()
        assert {event.body["response"]["status"] for event in calm.of_type("response.done")} == {"completed"}
        assert not calm.of_type("output_audio_buffer.cleared")


async def test_a_listener_who_nods_hears_the_story_go_on(tmp_path: Path) -> None:
    microphone = (Microphone().pause(5).say("tell me a story").pause(4.5).say("uh huh")
                  .pause(3.5).say("yeah", "awb").pause(3.5))
    async with running_server(tmp_path) as server, browser_call(server.url, microphone) as call:
        recording = await call.until_sample(microphone.length + RATE)
        await call.hang_up()
        _, *nods = recording.said(microphone)
        for nod in nods:
            assert spans(recording.agent[nod.start - RATE : nod.start]), "no story was being told when the nod came"
            # It may pause at the nod, but soon goes on.
            assert spans(recording.agent[nod.end : nod.end + 3 * RATE]), recording.dialogue()
        assert not recording.of_type("output_audio_buffer.cleared"), recording.dialogue()
        assert not recording.of_type("duologue.reply.heard"), recording.dialogue()
        statuses = {event.body["response"]["status"] for event in recording.of_type("response.done")}
        assert statuses <= {"completed"}, recording.dialogue()


async def test_loss_and_jitter_cost_neither_units_nor_the_answer(tmp_path: Path) -> None:
    microphone = Microphone().pause(5).say("what is seven plus five").pause(5).say("what is ten minus two")
    async with (
        running_server(tmp_path) as server,
        ImpairedNetwork(loss=0.1, jitter_ms=60, seed=11) as network,
    ):
        recording = await talk(server, microphone, network)
        assert await server.metric_reaches("duologue_calls_live", 0)
        units = await server.metric("duologue_units_total")
        concealed = await server.metric("duologue_concealed_samples_total")
    answers = replies_after(recording, recording.said(microphone))
    assert [heard(recording, span) for span in answers] == [12, 8], recording.dialogue()
    assert network.up.traffic.lost > 30
    assert concealed > 0
    # One unit for every 80 ms between the two moments the page knows of; connecting takes less than a second.
    created = recording.of_type("session.created")[0].at
    seconds = (recording.agent.size - created) / RATE
    assert abs(units / UNITS_PER_S - seconds) < 1.0
