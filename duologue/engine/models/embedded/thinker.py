"""The embedded thinker: pocketsphinx hears; a dialogue policy, or a small trained model, decides and writes.

It stands behind the interface a model has: units in, one decision each, text in deltas, memory only of what
was heard. No GPU, no download.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import (
    AppendUnit,
    Close,
    Decision,
    Inject,
    Interrupt,
    Open,
    Respond,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.models.embedded.mind import Mind
from duologue.engine.models.embedded.minds import Minds, RuledMinds, TrainedMinds
from duologue.engine.models.embedded.options import Options
from duologue.engine.models.options import read_options

_log = logging.getLogger(__name__)

_SLICE_S = 0.04
"""Time after which a step leaves the other sessions to the next one."""


class Thinker:
    """The stage. Each session is one ``Mind``; they share the recognisers."""

    def __init__(self, options: Options, unit_ms: int) -> None:
        self._kind: Minds = (TrainedMinds if options.wit == "trained" else RuledMinds)(options, unit_ms)
        self._inboxes: dict[str, deque[tuple[float, StageInput]]] = {}
        self._minds: dict[str, Mind] = {}

    @property
    def ready(self) -> bool:
        """Whether a message waits, or another recogniser should be loaded."""
        return any(self._inboxes.values()) or self._kind.pool.wants_more(len(self._minds))

    def receive(self, message: StageInput) -> None:
        """File ``message``; a session's own bound is that of the units it may have undecided."""
        if not isinstance(message, Open | AppendUnit | Inject | Respond | Interrupt | Close):
            return
        if isinstance(message, Open):
            # What waits is of the life before: its outputs would be stale, and its end must not take this one along.
            self._inboxes[message.session] = deque()
        inbox = self._inboxes.get(message.session)
        if inbox is not None:
            inbox.append((time.perf_counter(), message))

    def step(self) -> Sequence[StageOutput]:
        """One unit of every session that has one, within the time of a slice; what is left comes first next time."""
        outputs: list[StageOutput] = []
        waiting = [session for session, inbox in self._inboxes.items() if inbox]
        if not waiting:
            if self._kind.pool.wants_more(len(self._minds)):
                self._kind.pool.grow()
            return outputs
        began = time.perf_counter()
        for session in waiting:
            try:
                outputs += self._advance(session)
            except Exception as error:
                _log.exception("session %s cannot go on", session)
                outputs.append(SessionFailed(session, f"{type(error).__name__}: {error}"))
                self._fail(session)
            if time.perf_counter() - began > _SLICE_S:
                break
        return outputs

    def close(self) -> None:
        """End what the sessions share; idempotent."""
        self._kind.close()

    def _advance(self, session: str) -> list[StageOutput]:
        """Everything filed for ``session`` up to its next unit."""
        inbox = self._inboxes[session]
        # Whoever was served goes to the back.
        self._inboxes[session] = self._inboxes.pop(session)
        while inbox:
            filed, message = inbox.popleft()
            match message:
                case Open():
                    self._open(message)
                case Close():
                    self._drop(session)
                    return []
                case Interrupt():
                    self._minds[session].interrupt(message)
                case Inject():
                    self._minds[session].inject(message.item)
                case Respond():
                    self._minds[session].respond()
                case AppendUnit():
                    outputs = self._minds[session].hear(message.unit)
                    work_s = time.perf_counter() - filed
                    return [replace(output, work_s=work_s) if isinstance(output, Decision) else output
                            for output in outputs]
        return []

    def _open(self, message: Open) -> None:
        if message.session in self._minds:
            self._close(message.session)
        self._minds[message.session] = self._kind.make(message)

    def _drop(self, session: str) -> None:
        self._inboxes.pop(session, None)
        if session in self._minds:
            self._close(session)

    def _fail(self, session: str) -> None:
        self._inboxes.pop(session, None)
        mind = self._minds.pop(session, None)
        if mind is not None:
            mind.fail()
        self._kind.forget(session)

    def _close(self, session: str) -> None:
        self._minds.pop(session).close()
        self._kind.forget(session)


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker:
    """Load the thinker; raises ``ConfigError`` for options it does not know."""
    checked = read_options(Options, options, "embedded thinker")
    if pipeline.model is not None:
        raise ConfigError(f"the embedded model has its weights with it and reads no checkpoint: leave out "
                          f"model ({pipeline.model}), or give a stage config that serves one")
    return Thinker(checked, pipeline.unit_ms)
