"""Whole pipelines in their real processes, one of which is killed in the middle of a reply."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import numpy as np
import pytest

from duologue.config import DEFAULT_CONFIG, load
from duologue.engine import (
    CallerText,
    Decision,
    Engine,
    EngineEvent,
    EngineSession,
    Health,
    ReplyAudio,
    ReplyText,
    TurnEnd,
    TurnStatus,
    Unit,
)

pytestmark = pytest.mark.component

PIPELINE = load(DEFAULT_CONFIG).pipeline
DUPLEX = load("stage_configs/duplex-random.yaml").pipeline


class SilentCaller:
    """Gives a unit of silence whenever the last one has been decided."""

    def __init__(self, session: EngineSession, unit_samples: int = PIPELINE.unit_samples) -> None:
        self.session = session
        self.waits = False
        """Gives no units: those of a real caller come so slowly that none is due while a process starts."""
        self._silence = np.zeros(unit_samples, np.int16)
        self.events: list[EngineEvent] = []
        self._units = 0
        self._stream = session.outputs()

    async def until(self, wanted: Callable[[EngineEvent], bool]) -> None:
        async with asyncio.timeout(60):
            self._go_on()
            async for event in self._stream:
                self.events.append(event)
                if isinstance(event, Decision):
                    self._go_on()
                if wanted(event):
                    return
        raise AssertionError("the session is over")

    def _go_on(self) -> None:
        if not self.waits and self._units == sum(isinstance(event, Decision) for event in self.events):
            self.session.append(Unit(self._units, self._silence, speech=0.0))
            self._units += 1

    @property
    def decided(self) -> list[int]:
        return [event.unit for event in self.events if isinstance(event, Decision)]

    def ends(self, turn: int) -> list[tuple[TurnStatus, str]]:
        return [(event.status, event.text) for event in self.events
                if isinstance(event, TurnEnd) and event.turn == turn]


    def told(self, turn: int) -> str:
        return "".join(event.text for event in self.events
                       if isinstance(event, ReplyText) and event.fence.turn == turn)

    def speaking(self, since: int) -> int:
        """The reply of which audio has come since event number ``since`` and which is not over; 0 for none."""
        return next((event.fence.turn for event in self.events[since:]
                     if isinstance(event, ReplyAudio) and not self.ends(event.fence.turn)), 0)


def ended(event: EngineEvent) -> bool:
    return isinstance(event, TurnEnd)


@pytest.mark.parametrize("process", ["hearing", "voice"])
async def test_a_reply_goes_on_to_its_one_end_when_a_stage_process_is_killed_in_it(process: str) -> None:
    open_door = PIPELINE.admission.model_copy(update={"target_load": 1.0, "window_units": 1})
    engine = await Engine.start(PIPELINE.model_copy(update={"admission": open_door}))
    try:
        talking, other = SilentCaller(engine.open()), SilentCaller(engine.open())
        for caller in (talking, other):
            await caller.until(ended)
        other.session.inject(CallerText("what is four plus five"))
        await other.until(ended)
        talking.session.inject(CallerText("count to thirty"))
        await talking.until(lambda event: isinstance(event, ReplyAudio) and event.fence.turn == 1)
        pid = engine.health()[process].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await talking.until(ended)
        (end,) = talking.ends(1)
        assert end[0] is TurnStatus.DONE
        assert end[1].startswith("One, two, three,")
        assert end[1].rstrip(".").endswith("thirty")
        # What the reply says and what was said before is there for the other caller too.
        await other.until(lambda event: isinstance(event, Health) and event.up)
        other.session.inject(CallerText("say that again"))
        await other.until(ended)
        assert [status for status, _ in other.ends(2)] == [TurnStatus.DONE]
        assert "nine" in other.ends(2)[0][1]
        for caller in (talking, other):
            assert caller.decided == list(range(len(caller.decided)))
    finally:
        await engine.close()


@pytest.mark.parametrize("process", ["thinker", "voice"])
async def test_a_session_of_a_model_that_hands_on_states_outlives_every_kill_of_its_processes(process: str) -> None:
    engine = await Engine.start(DUPLEX)
    try:
        caller = SilentCaller(engine.open(), DUPLEX.unit_samples)
        for _ in range(2):
            seen = len(caller.events)
            while not caller.speaking(seen):
                await caller.until(lambda event: isinstance(event, ReplyAudio) and len(event.pcm) > 0)
            turn = caller.speaking(seen)
            pid = engine.health()[process].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            caller.waits = True
            await caller.until(lambda event: isinstance(event, Health) and event.up)
            caller.waits = False
            while not caller.ends(turn):
                await caller.until(ended)
            ((status, text),) = caller.ends(turn)
            assert status is TurnStatus.DONE
            assert text == caller.told(turn)
        assert caller.decided == list(range(len(caller.decided)))
    finally:
        await engine.close()
