"""A reply is sent as it is heard: on a virtual clock, against a call with a scripted engine."""

from __future__ import annotations

import asyncio

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from duologue.agent.transports.websocket.pace import LEAD_MS, Pace
from duologue.engine import Pcm
from tests.agent.test_call import FRAME, Scene, settle

LEAD = LEAD_MS * 16


class Player:
    """A client that plays what it gets at once, and the clock of both."""

    def __init__(self) -> None:
        self.scene = Scene(in_events=True)
        self.pace = Pace(self.scene.call.media, self._get)
        self.sent = 0
        self.played = 0
        self.dry = 0
        """Samples of silence it had to play inside a reply."""

    def _get(self, _response: str, _item: str, pcm: Pcm) -> None:
        self.sent += pcm.size

    async def frames(self, count: int, step: int = 1) -> None:
        """Let time pass; with ``step`` the server's clock is late and takes so many frames at once."""
        for _ in range(count // step):
            await settle()
            played = min(step * FRAME, self.sent - self.played)
            self.dry += step * FRAME - played if self.played else 0
            self.played += played
            self.scene.call.media.feed(np.zeros(step * FRAME, np.int16))
            self.pace.pass_time(step)
            assert self.sent - self.played <= LEAD + FRAME
        await settle()


async def test_a_reply_is_sent_a_little_ahead_and_never_runs_dry() -> None:
    player = Player()
    player.scene.session.say(1, 100)
    await player.frames(1)
    assert player.sent == LEAD
    await player.frames(80)
    assert player.sent == 80 * FRAME + LEAD
    assert player.dry == 0


async def test_what_was_heard_is_what_a_client_can_have_played() -> None:
    player = Player()
    player.scene.session.say(1, 100)
    await player.frames(40)
    player.scene.tell("response.cancel")
    (_, heard), = player.scene.session.cuts
    assert abs(heard - player.played) <= FRAME
    assert heard < player.sent


async def test_a_late_clock_is_caught_up_with() -> None:
    player = Player()
    player.scene.session.say(1, 200)
    await player.frames(10)
    await player.frames(40, step=8)
    assert player.sent - player.played == LEAD
    assert player.dry == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["say", "part", "wait", "late", "pause"]), st.integers(1, 30)), max_size=20))
def test_nothing_is_ever_sent_further_ahead_than_the_lead(order: list[tuple[str, int]]) -> None:
    asyncio.run(_any_order(order))


async def _any_order(order: list[tuple[str, int]]) -> None:
    player, turn = Player(), 1
    for what, much in order:
        match what:
            case "say" | "part":
                player.scene.session.say(turn, much, last=what == "say")
                turn += what == "say"
            case "wait":
                await player.frames(much)
            case "late":
                await player.frames(much, step=5)
            case "pause":
                player.scene.onset()
                await player.frames(3)
                player.scene.offset()
                await player.frames(much)
