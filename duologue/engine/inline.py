"""A pipeline in this process and on no clock: a session whose stages work when it is asked to let them.

Made for replaying recordings. It is the same session state, the same workers and the same stages, without processes
between them.
"""

from __future__ import annotations

import select
from collections.abc import Sequence

from duologue.engine.brief import Brief
from duologue.engine.config import PipelineConfig
from duologue.engine.messages import EngineEvent, HistoryItem, Item, Unit
from duologue.engine.pipeline import Graph, load_stage
from duologue.engine.stage import Closing, SelfWaking
from duologue.engine.state import SessionState
from duologue.engine.wire import FromStage, Taken
from duologue.engine.worker import Worker

PROCESS = "inline"
STALLED_S = 60.0
"""Real time after which a stage that works elsewhere (on a GPU, in vLLM's process) and says nothing is given up."""


class InlineSession:
    """One session and its own stages. Raises ``ConfigError`` when a stage cannot be created."""

    def __init__(self, config: PipelineConfig, brief: Brief | None = None, *, session: str = "inline") -> None:
        """``session`` is its name: some models draw their random numbers from it."""
        self.config = config.model_copy(update={
            "processes": {},
            "stages": tuple(stage.model_copy(update={"process": PROCESS}) for stage in config.stages),
            "edges": tuple(edge.model_copy(update={"connector": "local"}) for edge in config.edges)})
        graph = Graph(self.config)
        self._stages = {stage.name: load_stage(stage, self.config) for stage in self.config.stages}
        self._worker = Worker(graph, self._stages)
        self._state = SessionState(session, self.config, graph, brief)
        self._deliver()

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._state.over

    def reopen(self, brief: Brief) -> None:
        """Begin again with another brief; see ``EngineSession.reopen``."""
        self._state.reopen(brief)
        self._deliver()

    def append(self, unit: Unit) -> None:
        """Give the next unit; see ``EngineSession.append``."""
        self._state.append(unit)
        self._deliver()

    def inject(self, item: Item) -> None:
        """Give an item between two units; see ``EngineSession.inject``."""
        self._state.inject(item)
        self._deliver()

    def respond(self, instructions: str = "") -> None:
        """Ask for a reply; see ``EngineSession.respond``."""
        self._state.respond(instructions)
        self._deliver()

    def interrupt(self, turn: int, heard_samples: int) -> str:
        """Cut a reply; see ``EngineSession.interrupt``."""
        heard = self._state.interrupt(turn, heard_samples)
        self._deliver()
        return heard

    def history(self) -> Sequence[HistoryItem]:
        """What was said by both; see ``EngineSession.history``."""
        return self._state.history()

    def settle(self) -> None:
        """Let the stages work until every unit has its decision and none has anything left to do.

        Raises ``TimeoutError`` when a stage that works elsewhere falls silent for ``STALLED_S``.
        """
        wakes = [stage.wake_fd for stage in self._stages.values()
                 if isinstance(stage, SelfWaking) and stage.wake_fd is not None]
        while not self._state.over:
            ready = [name for name, stage in self._stages.items() if stage.ready]
            for name in ready:
                self._worker.step(name)
                self._deliver()
            if ready:
                continue
            if not wakes or self._state.decided == self._state.units:
                return
            if not select.select(wakes, [], [], STALLED_S)[0]:
                raise TimeoutError(f"no stage has said anything for {STALLED_S:g} s")

    @property
    def waiting(self) -> Sequence[EngineEvent]:
        """The events that ``pop`` has not given yet, in order."""
        return self._state.waiting

    def split(self, at: int, samples: int) -> None:
        """Have ``pop`` give the chunk of audio that is ``at``-th of ``waiting`` as two, the first of ``samples``."""
        self._state.split(at, samples)

    def pop(self, at: int = 0) -> EngineEvent | None:
        """Give the next event, or the ``at``-th after it, if there is one."""
        return self._state.pop(at)

    def close(self) -> None:
        """End the session and free its stages."""
        self._state.close()
        self._deliver()
        for stage in self._stages.values():
            if isinstance(stage, Closing):
                stage.close()

    def _deliver(self) -> None:
        while True:
            sends = self._state.take_sends()
            for message in sends:
                self._worker.dispatch(message)
            replies = self._worker.replies()
            if not sends and not replies:
                return
            for reply in replies:
                if isinstance(reply, FromStage):
                    self._state.receive(reply.stage, reply.serial, reply.message)
                elif isinstance(reply, Taken):
                    self._state.taken(reply.stage, reply.serial, reply.count)
