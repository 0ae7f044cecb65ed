"""A whole engine in this process: a real hub and real workers, and nothing between them but what the test delivers.

A ``House`` is an ``Engine`` whose stage processes are ``Inside`` ones: bytes that the hub sends wait in an inbox until
the test lets the worker work, and a process dies, comes back or is given up when the test says so. No clock decides
anything, so that what is left behind, how often and how much was said can be counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from duologue.engine import Engine, EngineEvent, EngineSession, PipelineConfig
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.supervisor import StageProcess, Watcher
from duologue.engine.wire import Counted, Decoder, ToHub, ToStage, ToWorker, encode
from duologue.engine.worker import Worker
from tests.engine.scripted import Order, unit


@dataclass(frozen=True)
class Crossed:
    """A message that crossed between the hub and a stage process."""

    message: ToWorker | ToHub
    size: int
    """Of its frame, in bytes."""


class Inside(StageProcess):
    """A stage process that is an object."""

    def __init__(self, made: StageProcess, config: PipelineConfig, graph: Graph, watcher: Watcher) -> None:
        super().__init__(made.process, made.replica, made.stages, config, watcher, name=made.name)
        self.worker: Worker
        self.crossed: list[Crossed] = []
        self._pipeline = config
        self._graph = graph
        self._hub = watcher
        self._inbox: deque[bytes] = deque()
        self._fresh: deque[ToHub] = deque()

    def begin(self) -> None:
        """Start it, or start it again."""
        stages = {stage.name: load_stage(stage, self._pipeline)
                  for stage in self._pipeline.stages if stage.name in self.stages}
        self.worker = Worker(self._graph, stages)
        self.up = True
        self._hub.process_up(self)

    def send(self, message: ToStage) -> None:
        if self.up:
            data = encode(message)
            self.crossed.append(Crossed(message, len(data)))
            self._inbox.append(data)

    async def stop(self) -> None:
        self.up = False

    def die(self) -> None:
        """What it has said arrives, what it was sent is lost."""
        self._tell()
        self.up = False
        self._inbox.clear()
        self._hub.process_down(self, "killed")

    def give_up(self) -> None:
        """It died too often."""
        self._tell()
        self.up, self.given_up = False, True
        self._inbox.clear()
        self._hub.process_given_up(self, "died too often")

    def work(self) -> bool:
        """Read, step what is ready once and say what came of it; whether there was anything to do."""
        if not self.up:
            return False
        inbox, self._inbox = self._inbox, deque()
        for data in inbox:
            (message,) = Decoder().feed(data)
            assert isinstance(message, ToStage)
            self.worker.dispatch(message)
        ready = [name for name, stage in self.worker.stages.items() if stage.ready]
        for name in ready:
            self.worker.step(name)
        # What a worker dropped is in the metrics already: they are this process's too.
        self._fresh += [reply for reply in self.worker.replies() if not isinstance(reply, Counted)]
        return self._tell() or bool(inbox or ready)

    def _tell(self) -> bool:
        fresh, self._fresh = self._fresh, deque()
        for message in fresh:
            data = encode(message)
            self.crossed.append(Crossed(message, len(data)))
            (copy,) = Decoder().feed(data)
            self._hub.process_said(self, copy)
        return bool(fresh)


class House:
    """An engine; it must be made in a running event loop."""

    def __init__(self, config: PipelineConfig) -> None:
        self.engine = Engine(config)
        graph = Graph(config)
        self.processes = {made.name: Inside(made, config, graph, self.engine)
                          for made in self.engine._processes.values()}
        self.engine._processes.update({(each.process, each.replica): each for each in self.processes.values()})
        for each in self.processes.values():
            each.begin()

    def work(self, *names: str) -> None:
        """Let these processes, or all, do what they have to do."""
        while sum(self.processes[name].work() for name in names or self.processes):
            pass

    @property
    def crossed(self) -> Sequence[Crossed]:
        """All that crossed between the hub and its processes."""
        return [one for each in self.processes.values() for one in each.crossed]


class Guest:
    """A session's agent: gives units and reads what there is."""

    def __init__(self, session: EngineSession) -> None:
        self.session = session
        self.events: list[EngineEvent] = []
        self._units = 0

    def say(self, *orders: Order) -> None:
        for order in orders:
            self.session.append(unit(self._units, order))
            self._units += 1

    def read(self) -> list[EngineEvent]:
        """Everything that waits."""
        fresh = []
        while (event := self.session._state.pop()) is not None:
            fresh.append(event)
        self.events += fresh
        return fresh
