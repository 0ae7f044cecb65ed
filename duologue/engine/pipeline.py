"""The stage graph of a pipeline config: how stages are joined and where they run; and how a stage's model is made."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import cast

from duologue.engine.config import ConfigError, EdgeConfig, PipelineConfig, ProcessConfig, StageConfig
from duologue.engine.placement import Lane
from duologue.engine.stage import Stage, StageFactory

MODELS = "duologue.engine.models"


@dataclass(frozen=True, slots=True)
class Node:
    """One stage in the graph, with the edge that leaves it."""

    name: str
    process: str
    edge: EdgeConfig | None
    """None for the last stage."""

    @property
    def successor(self) -> str | None:
        """The stage its output goes to."""
        return self.edge.target if self.edge else None

    @property
    def direct(self) -> bool:
        """Whether its output reaches the next stage without passing the hub."""
        return self.edge is not None and self.edge.connector != "socket"

    @property
    def shared(self) -> bool:
        """Whether it reaches it through memory that two processes share."""
        return self.edge is not None and self.edge.connector == "shm"

    @property
    def capacity(self) -> int:
        """Messages that may be on the edge for one session."""
        return self.edge.capacity if self.edge else 0


class Graph:
    """The chain of stages, from the thinker on, and the processes they run in."""

    def __init__(self, config: PipelineConfig) -> None:
        self.async_chunk = config.async_chunk
        """Whether stages overlap, or each waits for the whole of a reply."""
        edges = {edge.source: edge for edge in config.edges}
        self.nodes = {stage.name: Node(stage.name, stage.process, edges.get(stage.name)) for stage in config.stages}
        self.stages = tuple(self.nodes)
        self.thinker, self.voice = self.stages[0], self.stages[1:]
        """The first stage, which hears and decides, and those after it, which speak."""
        self.processes: dict[str, tuple[str, ...]] = {}
        for node in self.nodes.values():
            self.processes[node.process] = (*self.processes.get(node.process, ()), node.name)
        self.replicas = {name: config.processes.get(name, ProcessConfig()).replicas for name in self.processes}
        """How many of each process there are."""

    @property
    def lanes(self) -> tuple[Lane, ...]:
        """Processes that shared memory joins, replica by replica; the thinker's lane first."""
        lanes = [[name] for name in self.processes]
        for node in self.nodes.values():
            if node.shared and node.successor:
                ends = (node.process, self.nodes[node.successor].process)
                joined = [lane for lane in lanes if not set(ends).isdisjoint(lane)]
                joined[0][:] = dict.fromkeys(process for lane in joined for process in lane)
                lanes = [lane for lane in lanes if lane not in joined[1:]]
        return tuple(Lane(tuple(lane), self.replicas[lane[0]]) for lane in lanes)

    def source(self, stage: str) -> str:
        """The stage whose output ``stage`` gets; raises ``ValueError`` for the first one."""
        if stage == self.thinker:
            raise ValueError(f"{stage} is the first stage")
        return self.stages[self.stages.index(stage) - 1]

    def rebuilt_with(self, stage: str) -> tuple[str, ...]:
        """Stages whose session state is only worth something together with that of ``stage``.

        The voice stages hold pieces of one reply, so they are rebuilt together; the thinker with them when
        its text reaches the talker without passing the hub, which then cannot say what was lost between them.
        So stages that a direct edge joins are always in the same life of a session, by the same number.
        """
        if self.nodes[self.thinker].direct:
            return self.stages
        return (self.thinker,) if stage == self.thinker else self.voice


def load_stage(stage: StageConfig, pipeline: PipelineConfig) -> Stage:
    """Import the stage's model and create it; raises ``ConfigError`` that says what to change."""
    module = _find(f"{MODELS}.{stage.model}") or _find(stage.model)
    create = getattr(module, "create", None)
    if create is None:
        known = sorted(name.removeprefix(f"{MODELS}.") for _, name, is_package in pkgutil.walk_packages(
            importlib.import_module(MODELS).__path__, f"{MODELS}.") if not is_package)
        raise ConfigError(
            f"stage {stage.name!r}: there is no model {stage.model!r}; name a module under {MODELS} "
            f"that has a 'create' (modules there: {', '.join(known) or 'none'}), "
            f"or an importable module by its full path")
    return cast(StageFactory, create)(stage.options, pipeline)


def _find(name: str) -> ModuleType | None:
    """Import ``name``; None when it does not exist. A package it needs and lacks is a ``ConfigError``."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise ConfigError(f"the model module {name} needs the package {error.name!r}, "
                          f"which is not installed") from error
