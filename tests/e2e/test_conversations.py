"""People who call the real server from its own page in a real browser: what they ask, and what they hear."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.answers import number_in
from tests.harness.browser import browser_call
from tests.harness.impair import ImpairedNetwork
from tests.harness.microphone import Microphone
from tests.harness.recogniser import counted
from tests.harness.recording import Recording
from tests.harness.server import ServerProcess, running_server
from tests.harness.sound import RATE, Span, spans

pytestmark = pytest.mark.e2e

UNITS_PER_S = 12.5
"""Of the embedded pipeline (80 ms)."""


async def talk(server: ServerProcess, microphone: Microphone, network: ImpairedNetwork | None = None) -> Recording:
    """Play the whole microphone to the server, wait for the last reply to end, hang up."""
    async with browser_call(server.url, microphone, network) as call:
        so_far = await call.until_sample(microphone.length + 2 * RATE)
        last = so_far.said(microphone)[-1]
        recording = await call.until_answered(last.end)
        await call.hang_up()
        return recording


def replies_after(recording: Recording, said: list[Span]) -> list[Span]:
    """The stretch from the end of each utterance to the start of the next, or of the recording's end."""
    ends = [*(span.start for span in said[1:]), recording.agent.size]
    return [Span(span.end, end) for span, end in zip(said, ends, strict=True)]


def heard(recording: Recording, span: Span) -> int | None:
    return number_in(recording.agent[span.start : span.end])


async def test_two_callers_at_once_are_each_answered_and_one_of_them_interrupts(tmp_path: Path) -> None:
    counting = (Microphone("slt").pause(5).say("what is seven plus five").pause(5).say("count to twenty")
                .pause(5.5).say("stop").pause(4).say("what was the last number you said"))
    asking = (Microphone("awb").pause(6).say("what is three times four").pause(6).say("what is ten minus two")
              .pause(6).say("what is six plus nine"))
    async with running_server(tmp_path) as server:
        first, second = await asyncio.gather(talk(server, counting), talk(server, asking))
        assert await server.metric_reaches("duologue_calls_live", 0)
    said = first.said(counting)
    sum_, count, _after_stop, last = replies_after(first, said)
    assert heard(first, sum_) == 12, first.dialogue()

    # Up to two seconds after "stop" began: the count must have ended by then, and "okay" is no number.
    numbers = counted(first.agent[count.start : said[2].start + 2 * RATE])
    played = [number for number, _ in numbers]
    assert played == list(range(1, len(played) + 1)), first.dialogue()
    assert 2 <= len(played) < 20, first.dialogue()
    sound_end = count.start + numbers[-1][1].end
    recalled = heard(first, last)
    # A number cut short may have been made out by the ear or not; one with quiet after it was played whole.
    cut = not spans(first.agent[sound_end - RATE // 50 : sound_end])
    possible = {played[-1], played[-1] + 1} | ({played[-1] - 1} if cut else set())
    assert recalled in possible, first.dialogue()
    assert first.of_type("duologue.reply.heard")

    calm = replies_after(second, second.said(asking))
    assert [heard(second, span) for span in calm] == [12, 8, 15], second.dialogue()
    assert {event.body["response"]["status"] for event in second.of_type("response.done")} == {"completed"}
    assert not second.of_type("output_audio_buffer.cleared")


async def test_a_listener_who_says_uh_huh_hears_the_story_go_on(tmp_path: Path) -> None:
    microphone = Microphone().pause(5).say("tell me a story").pause(6).say("uh huh", "awb").pause(5)
    async with running_server(tmp_path) as server, browser_call(server.url, microphone) as call:
        recording = await call.until_sample(microphone.length + RATE)
        await call.hang_up()
    _, nod = recording.said(microphone)
    assert spans(recording.agent[nod.start - RATE : nod.start]), "the story was not being told when the nod came"
    # It may pause at the nod; it must be heard again within three seconds and for most of the rest.
    after = spans(recording.agent[nod.end + RATE : nod.end + 4 * RATE])
    assert sum(span.end - span.start for span in after) > RATE
    assert not recording.of_type("duologue.reply.heard"), recording.dialogue()
    assert all(event.body["response"]["status"] != "cancelled" for event in recording.of_type("response.done"))


async def test_loss_and_jitter_cost_neither_units_nor_the_answer(tmp_path: Path) -> None:
    microphone = Microphone().pause(5).say("what is seven plus five").pause(5).say("what is three times four")
    async with (
        running_server(tmp_path) as server,
        ImpairedNetwork(loss=0.1, jitter_ms=60, seed=11) as network,
    ):
        recording = await talk(server, microphone, network)
        assert await server.metric_reaches("duologue_calls_live", 0)
        units = await server.metric("duologue_units_total")
        concealed = await server.metric("duologue_concealed_samples_total")
    answers = replies_after(recording, recording.said(microphone))
    assert [heard(recording, span) for span in answers] == [12, 12], recording.dialogue()
    assert network.up.traffic.lost > 30
    assert concealed > 0
    # One unit for every 80 ms between the two moments the page knows of; connecting takes less than a second.
    created = recording.of_type("session.created")[0].at
    seconds = (recording.agent.size - created) / RATE
    assert abs(units / UNITS_PER_S - seconds) < 1.0
