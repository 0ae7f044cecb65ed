"""The stages of ``benchmarks.connectors``: one says a reply, one sends messages, one notes when they come."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duologue.engine import Choice, Decision, Fence, PipelineConfig, ReplyAudio, ReplyText
from duologue.engine.messages import AppendUnit, CodecFrames, Hold, Open, StageInput, StageOutput

PER_STEP = 4
"""Messages the talker sends in a step, when nothing sets its pace."""


class Thinker:
    """Says one reply at the first unit."""

    def __init__(self) -> None:
        self._units: list[AppendUnit] = []

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do."""
        return bool(self._units)

    def receive(self, message: StageInput) -> None:
        """File ``message``."""
        if isinstance(message, AppendUnit):
            self._units.append(message)

    def step(self) -> Sequence[StageOutput]:
        """Do what is due."""
        unit = self._units.pop(0)
        said = ReplyText(Fence(unit.session, unit.epoch, 0, 0), 0, "go ", last=True)
        return [said, Decision(unit.session, unit.epoch, 0, unit.unit.index, Choice.SPEAK)]


class Talker:
    """Sends ``count`` messages of ``shape``: one every ``period_s``, or as fast as its edge takes them if that is 0."""

    def __init__(self, count: int, shape: tuple[int, int], dtype: str, period_s: float) -> None:
        self._count = count
        self._frames = np.zeros(shape, dtype)
        self._period_s = period_s
        self._session = ""
        self._sent = 0
        self._held = False
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK) if period_s else None

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do."""
        return not self._period_s and bool(self._session) and not self._held and self._sent < self._count

    def receive(self, message: StageInput) -> None:
        """File ``message``."""
        if isinstance(message, ReplyText):
            self._session = message.fence.session
            if self._period_s:
                threading.Thread(target=self._tick, daemon=True).start()
        elif isinstance(message, Hold):
            self._held = message.held

    def step(self) -> Sequence[StageOutput]:
        """Do what is due."""
        if self.wake_fd is not None:
            return self._send(os.eventfd_read(self.wake_fd))
        return self._send(PER_STEP)

    def _send(self, count: int) -> Sequence[StageOutput]:
        messages = []
        for _ in range(min(count, self._count - self._sent)):
            frames = self._frames.copy()
            # The first bytes are the time at which it was made, on the clock of all processes.
            frames.reshape(-1)[:2].view(np.int64)[0] = time.monotonic_ns()
            self._sent += 1
            messages.append(CodecFrames(Fence(self._session, 0, 0, self._sent - 1), frames,
                                        last=self._sent == self._count))
        return messages

    def _tick(self) -> None:
        assert self.wake_fd is not None
        for _ in range(self._count):
            time.sleep(self._period_s)
            os.eventfd_write(self.wake_fd, 1)


class Codec:
    """Notes when each message was made and when it came, int64 (n, 2) of nanoseconds, in the file ``results``."""

    def __init__(self, results: str) -> None:
        self._results = results
        self._times: list[tuple[int, int]] = []
        self._last: CodecFrames | None = None

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do."""
        return self._last is not None

    def receive(self, message: StageInput) -> None:
        """File ``message``."""
        if isinstance(message, CodecFrames):
            self._times.append((int(message.frames.reshape(-1)[:2].view(np.int64)[0]), time.monotonic_ns()))
            if message.last:
                self._last = message
        elif isinstance(message, Open):
            self._times.clear()

    def step(self) -> Sequence[StageOutput]:
        """Do what is due."""
        assert self._last is not None
        np.save(self._results, np.array(self._times, np.int64))
        session, self._last = self._last.fence.session, None
        return [ReplyAudio(Fence(session, 0, 0, 0), 0, np.zeros(0, np.int16), last=True)]


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker | Talker | Codec:
    """The stage of ``options["role"]``."""
    match options["role"]:
        case "thinker":
            return Thinker()
        case "talker":
            return Talker(options["count"], (options["rows"], options["width"]), options["dtype"], options["period_s"])
        case _:
            return Codec(options["results"])
