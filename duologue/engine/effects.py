"""What a session wants done: messages for its stages, events for its agent, records, and drops that are counted."""

from __future__ import annotations

from collections import Counter

from duologue.engine.config import PipelineConfig
from duologue.engine.connectors import Filed
from duologue.engine.journal import Journal, Record
from duologue.engine.messages import EngineEvent, StageInput
from duologue.engine.outbox import Outbox
from duologue.engine.pipeline import Graph
from duologue.engine.wire import ToStage


class Effects:
    """One session's, from all of its parts in the order in which they come about."""

    def __init__(self, config: PipelineConfig, graph: Graph) -> None:
        self.sends: list[ToStage] = []
        self.outbox = Outbox()
        self.journal = Journal(config.journal_units)
        self.drops: Counter[tuple[str, str]] = Counter()
        self.serials = dict.fromkeys(graph.stages, 0)
        """The life of the session that each stage is in."""
        self.over = False
        """Whether the session has ended: nothing is emitted any more."""

    def send(self, stage: str, message: StageInput | Filed, number: int = 0) -> None:
        """Have ``stage`` given ``message`` in its present life; one that crosses an edge has its ``number`` there."""
        self.sends.append(ToStage(stage, self.serials[stage], message, number))

    def emit(self, event: EngineEvent) -> None:
        """Tell the agent."""
        if not self.over:
            self.outbox.put(event)

    def record(self, record: Record) -> None:
        """Write into the journal."""
        self.drop("journal", "full", self.journal.write(record))

    def drop(self, what: str, reason: str, count: int = 1) -> None:
        """Count what was dropped."""
        if count:
            self.drops[what, reason] += count
