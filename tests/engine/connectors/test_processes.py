"""Direct edges between real stage processes that are killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from duologue.engine import Engine, Health, TurnEnd, TurnStatus
from tests.engine.scripted import Order, pipeline
from tests.engine.test_engine import Caller

pytestmark = pytest.mark.component


def shared(engine: Engine, process: str) -> list[str]:
    """The names of the memory that the process shares with others (proc_pid_maps(5))."""
    maps = Path(f"/proc/{engine.health()[process].pid}/maps").read_text()
    return sorted({line.split(maxsplit=5)[5] for line in maps.splitlines() if "rw-s" in line})


async def test_whichever_process_is_killed_each_word_is_spoken_once_and_nothing_is_left_behind() -> None:
    fds = len(os.listdir("/proc/self/fd"))
    engine = await Engine.start(pipeline("mind", "~talk", "~sound"))
    try:
        # No name in any file system, so nothing to be left there.
        edges = [f"/memfd:duologue-{edge} (deleted)" for edge in ("talker-codec", "thinker-talker")]
        assert [shared(engine, name) for name in ("mind", "talk", "sound")] == [edges[1:], edges, edges[:1]]
        callers = [Caller(engine.open()) for _ in range(3)]
        for caller in callers:
            caller.say(Order.SPEAK)
            await caller.spoken(0, 1)
        for process in ("talk", "mind", "sound"):
            # Two are in the middle of many words, one has just begun to listen again.
            for caller in callers[:2]:
                caller.say(Order.BURST)
            callers[2].say(Order.SPEAK)
            pid = engine.health()[process].pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            for caller in callers:
                await caller.until(lambda event: isinstance(event, Health) and event.up)
        for words, caller in zip((92, 92, 5), callers, strict=True):
            caller.say(Order.FINISH)
            await caller.until(lambda event: isinstance(event, TurnEnd))
            assert caller.words(0) == list(range(words))
            assert [status for _, status, _ in caller.ends] == [TurnStatus.DONE]
        for caller in callers:
            await caller.session.close()
    finally:
        await engine.close()
    assert len(os.listdir("/proc/self/fd")) <= fds
