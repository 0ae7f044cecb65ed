"""The stage graph of a pipeline config, and how a stage's model is found and made."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import cast

from duologue.engine.config import ConfigError, PipelineConfig, StageConfig
from duologue.engine.stage import Stage, StageFactory

MODELS = "duologue.engine.models"


@dataclass(frozen=True, slots=True)
class Node:
    """One stage in the graph, with the edge that leaves it."""

    name: str
    process: str
    successor: str | None
    local: bool
    """Whether the successor is in the same process."""
    capacity: int
    """Messages that may wait on the edge for one session."""


class Graph:
    """The chain of stages, from the thinker on."""

    def __init__(self, config: PipelineConfig) -> None:
        edges = {edge.source: edge for edge in config.edges}
        self.nodes = {
            stage.name: Node(
                name=stage.name, process=stage.process,
                successor=edges[stage.name].target if stage.name in edges else None,
                local=stage.name in edges and edges[stage.name].connector == "local",
                capacity=edges[stage.name].capacity if stage.name in edges else 0)
            for stage in config.stages}
        self.stages = tuple(self.nodes)
        self.thinker, self.voice = self.stages[0], self.stages[1:]
        """The first stage, which hears and decides, and those after it, which speak."""
        self.processes: dict[str, tuple[str, ...]] = {}
        for node in self.nodes.values():
            self.processes[node.process] = (*self.processes.get(node.process, ()), node.name)

    def rebuilt_with(self, stage: str) -> tuple[str, ...]:
        """Stages whose session state is only worth something together with that of ``stage``.

        The voice stages hold pieces of one reply, so they are rebuilt together; the thinker with them when
        its text reaches the talker without passing the hub, which then cannot say what was lost between them.
        """
        if self.nodes[self.thinker].local:
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
