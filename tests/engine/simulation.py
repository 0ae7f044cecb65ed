"""A pipeline without processes, sockets or a loop: real ``Worker``s and a real ``SessionState``, whose messages
wait in queues until the test delivers them. Order is free between queues, as it is between processes."""

from __future__ import annotations

import itertools
import select
import weakref
from collections import deque

import numpy as np

from duologue.engine import Brief, EngineEvent, PipelineConfig, ReplyAudio, ReplyText, TurnEnd
from duologue.engine.connectors import ShmEdge, ShmReceiver, ShmSender
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.state import SessionState
from duologue.engine.wire import Decoder, FromStage, Taken, ToHub, ToStage, encode
from duologue.engine.worker import Worker
from tests.engine.scripted import WORD_SAMPLES, Order, unit

NUMBERS = itertools.count()
PLACEMENTS = [("a", "a", "a"), ("a", "b", "b"), ("a", "a", "b"), ("a", "b", "c"),
              ("a", "~b", "b"), ("a", "b", "~c"), ("a", "~b", "~c")]


class Simulation:
    def __init__(self, config: PipelineConfig, brief: Brief | None = None) -> None:
        self.config = config
        self.graph = Graph(config)
        self.down: set[str] = set()
        self.to_worker: dict[str, deque[ToStage]] = {}
        self.to_hub: dict[str, deque[ToHub]] = {}
        self.workers: dict[str, Worker] = {}
        self.edges = [ShmEdge.create(edge) for edge in config.edges if edge.connector == "shm"]
        for made in self.edges:
            weakref.finalize(self, made.close)
        for name in self.graph.processes:
            self._spawn(name)
        # The scripted stages remember by session what they have failed once.
        self.state = SessionState(f"s{next(NUMBERS)}", config, self.graph, brief)
        self.events: list[EngineEvent] = []
        self.collect()

    @property
    def processes(self) -> list[str]:
        return list(self.graph.processes)

    def _spawn(self, name: str) -> None:
        self.to_worker[name], self.to_hub[name] = deque(), deque()
        stages = {stage.name: load_stage(stage, self.config)
                  for stage in self.config.stages if stage.process == name}
        self.workers[name] = Worker(
            self.graph, stages,
            senders={edge.source: ShmSender(edge) for edge in self.edges if edge.source in stages},
            receivers={edge.target: ShmReceiver(edge) for edge in self.edges if edge.target in stages})

    def collect(self) -> None:
        for message in self.state.take_sends():
            process = self.graph.nodes[message.stage].process
            if process not in self.down:
                self.to_worker[process].append(message)

    def deliver_to_worker(self, name: str) -> bool:
        if not self.to_worker[name]:
            return False
        (message,) = Decoder().feed(encode(self.to_worker[name].popleft()))
        assert isinstance(message, ToStage)
        self.workers[name].dispatch(message)
        self.to_hub[name].extend(self.workers[name].replies())
        return True

    def answer_doorbells(self, name: str) -> bool:
        """Let the worker turn to its direct edges, if a doorbell rang."""
        acts = dict(self.workers[name].doorbells())
        rung = select.select(list(acts), [], [], 0)[0]
        for fileno in rung:
            acts[fileno]()
        self.to_hub[name].extend(self.workers[name].replies())
        return bool(rung)

    def step(self, name: str) -> bool:
        worker = self.workers[name]
        ready = [stage for stage in self.graph.processes[name] if worker.stages[stage].ready]
        for stage in ready:
            worker.step(stage)
        self.to_hub[name].extend(worker.replies())
        return bool(ready)

    def deliver_to_hub(self, name: str) -> bool:
        if not self.to_hub[name]:
            return False
        (message,) = Decoder().feed(encode(self.to_hub[name].popleft()))
        if isinstance(message, FromStage):
            self.state.receive(message.stage, message.serial, message.message)
        elif isinstance(message, Taken):
            self.state.taken(message.stage, message.serial, message.count)
        self.collect()
        return True

    def kill(self, name: str) -> None:
        """The process dies: what it sent may still arrive (it was in the socket), what it was sent is lost."""
        if name in self.down:
            return
        while self.deliver_to_hub(name):
            pass
        self.down.add(name)
        self.to_worker[name].clear()
        self.state.lost(self.graph.processes[name], "killed")
        self.collect()

    def restart(self, name: str) -> None:
        if name not in self.down:
            return
        self._spawn(name)
        self.down.discard(name)
        self.state.restored(self.graph.processes[name])
        self.collect()

    def pop(self) -> bool:
        event = self.state.pop()
        if event is not None:
            self.events.append(event)
        return event is not None

    def settle(self) -> None:
        """Let everything happen that is due."""
        for name in self.processes:
            self.restart(name)
        self.work(*self.processes)
        while self.pop():
            pass

    def work(self, *names: str) -> None:
        """Let these processes (all that are up, if none is named) do what they have to do."""
        while self.work_once(*names or [name for name in self.processes if name not in self.down]):
            pass

    def work_once(self, *names: str) -> bool:
        return sum(action(name) for name in names
                   for action in (self.deliver_to_worker, self.answer_doorbells, self.step,
                                  self.deliver_to_hub)) > 0


def say(sim: Simulation, *orders: Order) -> None:
    for order in orders:
        sim.state.append(unit(sim.state.units, order))
        sim.collect()


def ends(sim: Simulation) -> list[TurnEnd]:
    return [event for event in sim.events if isinstance(event, TurnEnd)]


def spoken(sim: Simulation, turn: int) -> list[int]:
    """Numbers of the words in a reply's audio; checks that it is whole and in place, and its spans too."""
    place = 0
    text = "".join(e.text for e in sim.events if isinstance(e, ReplyText) and e.fence.turn == turn)
    for audio in (e for e in sim.events if isinstance(e, ReplyAudio) and e.fence.turn == turn):
        assert audio.first_sample == place
        for span in audio.spans:
            assert (span.first_sample, span.end_sample) == (place, place + WORD_SAMPLES)
            assert text[span.start:span.end] == text.split()[place // WORD_SAMPLES]
        place += len(audio.pcm)
    pcm = np.concatenate([e.pcm for e in sim.events if isinstance(e, ReplyAudio) and e.fence.turn == turn]
                         or [np.zeros(0, np.int16)])
    return [int(n) for n in pcm[::WORD_SAMPLES]]
