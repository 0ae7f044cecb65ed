"""The one interface behind which every model stage lives.

A stage serves all its sessions from one worker loop: ``receive`` only files a message, ``step`` does one
bounded slice of work for every session that is ready. The loop around it is in ``worker.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from duologue.engine.config import PipelineConfig
from duologue.engine.messages import StageInput, StageOutput


class Stage(Protocol):
    """One model stage of a pipeline, inside its worker process."""

    def receive(self, message: StageInput) -> None:
        """File ``message``; never computes and never blocks. Messages of unknown sessions are ignored."""

    def step(self) -> Sequence[StageOutput]:
        """Do one slice of work, at most some tens of milliseconds, batched over the sessions that are ready.

        Outputs of one session are in order, and each message about a reply has the epoch the session had when
        the work on it began. When one session's work cannot be done, returns a ``SessionFailed`` for it
        beside the outputs of the others: the session is closed in the stage and rebuilt once from its
        journal. An exception cannot be pinned on a session, and does the same to all of the stage's.
        """

    @property
    def ready(self) -> bool:
        """Whether ``step`` has anything to do."""


@runtime_checkable
class SelfWaking(Protocol):
    """A stage that can become ready without a message, because work goes on elsewhere."""

    @property
    def wake_fd(self) -> int | None:
        """A descriptor that becomes readable then; ``step`` makes it unreadable again. None when there is none.

        Constant from the moment the stage was created.
        """


@dataclass(frozen=True, slots=True)
class KvBudget:
    """What a stage process can hold of its sessions' KV: ``positions`` in all, at most ``session_positions`` each.

    ``sessions`` is how many may hold KV at once.
    """

    positions: int
    session_positions: int
    sessions: int


@runtime_checkable
class HoldsKv(Protocol):
    """A stage whose sessions hold KV: no more are admitted than it can hold."""

    @property
    def kv_budget(self) -> KvBudget:
        """Constant from the moment the stage was created."""


@runtime_checkable
class Closing(Protocol):
    """A stage that holds more than memory."""

    def close(self) -> None:
        """Free it, as the process ends in good order; idempotent."""


class StageFactory(Protocol):
    """``create`` of a model module: builds the stage a stage config names."""

    def __call__(self, options: Mapping[str, Any], pipeline: PipelineConfig) -> Stage:
        """Load the model; raises ``ConfigError`` for options it does not know."""
