"""The engine: stage processes, the sessions they serve, and who may open one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from duologue.engine.config import PipelineConfig
from duologue.engine.session import EngineSession


@dataclass(frozen=True, slots=True)
class ProcessHealth:
    """Whether one stage process is up, which stages it holds, and in words what is wrong if it is not."""

    up: bool
    stages: tuple[str, ...]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the engine is: p99 unit time and unit period in seconds, sessions open, callers waiting."""

    p99_s: float
    period_s: float
    sessions: int
    waiting: int


class Engine:
    """A running pipeline."""

    config: PipelineConfig

    @classmethod
    async def start(cls, config: PipelineConfig) -> Engine:
        """Start every stage process and wait until all are ready; raises ``ConfigError``."""
        raise NotImplementedError

    def open(self, *, instructions: str = "", voice: str = "", ticket: str | None = None) -> EngineSession:
        """Open a session; raises ``Refused``."""
        raise NotImplementedError

    def health(self) -> Mapping[str, ProcessHealth]:
        """State of every stage process, by name."""
        raise NotImplementedError

    def load(self) -> Load:
        """How busy the engine is."""
        raise NotImplementedError

    async def drain(self) -> None:
        """Take no new session and return when the last one has closed."""
        raise NotImplementedError

    async def close(self) -> None:
        """End every session and stage process; idempotent."""
        raise NotImplementedError
