"""The duplex thinker: units of the caller's audio in, for each a decision in tokens, text with its states out.

Each session is one resumable sequence over the runner and a ``Mind`` that reads its answers. Units of all sessions that
are ready run together, and none waits for another.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from duologue.engine.config import ConfigError, PipelineConfig
from duologue.engine.messages import (
    AppendUnit,
    Close,
    Inject,
    Interrupt,
    Open,
    Respond,
    SessionFailed,
    StageInput,
    StageOutput,
)
from duologue.engine.models.duplex.checkpoint import load
from duologue.engine.models.duplex.ear import Ear
from duologue.engine.models.duplex.floor import FloorOptions
from duologue.engine.models.duplex.format import Format, SamplingOptions
from duologue.engine.models.duplex.mind import Mind, Model
from duologue.engine.models.duplex.runner_options import RunnerOptions, open_runner
from duologue.engine.models.duplex.words import Words
from duologue.engine.models.options import read_options
from duologue.engine.models.stored import sourced
from duologue.engine.runners.base import Finish, Runner
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import WindowConfig
from duologue.engine.stage import KvBudget
from duologue.strict import Strict

_log = logging.getLogger(__name__)

_SLICE_S = 0.02
"""Time for which a step puts back units of sessions that are opened again; the rest is for the next one."""


class SessionOptions(Strict):
    """What a thinker's sessions may take, of whatever family."""

    window: WindowConfig | None = WindowConfig()
    """When a session that grows too long lets its oldest units go; null for one that fails then."""
    max_typed_tokens: int = Field(default=512, gt=0)
    """Of a text the caller types no more is read."""
    floor: FloorOptions = FloorOptions()


class ThinkerOptions(RunnerOptions, SessionOptions):
    """Options of the duplex thinker."""

    sampling: SamplingOptions = SamplingOptions()


class Thinker:
    """The stage."""

    def __init__(self, runner: Runner, model: Model, window: WindowConfig | None) -> None:
        """Raise ``ConfigError`` for a window that does not fit the runner."""
        self._runner = runner
        self._model = model
        try:
            self._sessions = Sessions(runner, model.format.grammar, window)
        except ValueError as error:
            raise ConfigError(f"options of the duplex thinker: {error}") from None
        self._minds: dict[str, Mind] = {}

    @property
    def kv_budget(self) -> KvBudget:
        """What its runner holds."""
        capacity = self._runner.capacity
        return KvBudget(capacity.positions, self._sessions.longest, capacity.max_sessions)

    @property
    def wake_fd(self) -> int | None:
        """The runner's."""
        return self._runner.wake_fd

    @property
    def ready(self) -> bool:
        """Whether a message waits that can be acted on, or the runner has something."""
        return self._sessions.ready or any(mind.ready for mind in self._minds.values())

    def receive(self, message: StageInput) -> None:
        """File ``message``; a session's own bound is that of the units it may have undecided."""
        match message:
            case Open():
                self._drop(message.session)
                self._minds[message.session] = Mind(message, self._model, self._sessions)
            case Close():
                self._drop(message.session)
            case AppendUnit() | Inject() | Respond() | Interrupt():
                if (mind := self._minds.get(message.session)) is not None:
                    mind.receive(message, time.perf_counter())
            case _:
                pass

    def step(self) -> Sequence[StageOutput]:
        """Begin every unit that can begin, and let the runner go on with all that run."""
        outputs: list[StageOutput] = []
        began = time.perf_counter()

        def late() -> bool:
            return time.perf_counter() - began > _SLICE_S

        for session, mind in list(self._minds.items()):
            if not mind.ready:
                continue
            # Whoever was served goes to the back.
            self._minds[session] = self._minds.pop(session)
            try:
                mind.advance(late)
            except Exception as error:
                _log.exception("session %s cannot go on", session)
                outputs.append(self._fail(session, f"{type(error).__name__}: {error}"))
            if late():
                break
        unheard = [(mind, *unit) for mind in self._minds.values() if (unit := mind.unheard) is not None]
        if unheard:
            minds, streams, pcms = zip(*unheard, strict=True)
            for mind, heard in zip(minds, self._model.ear.hear(streams, pcms), strict=True):
                mind.ask(heard)
        for output in self._sessions.step():
            if output.finish is Finish.FAILED:
                outputs.append(self._fail(output.session, output.detail))
            else:
                outputs += self._minds[output.session].take(output, time.perf_counter())
        return outputs

    def close(self) -> None:
        """End the runner; idempotent."""
        self._runner.close()

    def _fail(self, session: str, detail: str) -> SessionFailed:
        self._drop(session)
        return SessionFailed(session, detail)

    def _drop(self, session: str) -> None:
        self._minds.pop(session, None)
        self._sessions.close(session)


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker:
    """The thinker of a duplex pipeline; its options are :class:`ThinkerOptions`."""
    wanted = read_options(ThinkerOptions, sourced(options, pipeline), "duplex thinker")
    checkpoint = load(wanted)
    config = checkpoint.config
    if pipeline.unit_ms != config.unit_ms:
        raise ConfigError(f"unit_ms is {pipeline.unit_ms}, but the checkpoint's units are of {config.unit_ms} ms")
    ear = {name: tensor.float().numpy() for name, tensor in checkpoint.tensors("ear")}
    runner = open_runner("thinker", checkpoint, wanted)
    model = Model(Format(config, checkpoint.tokenizer, wanted.sampling), Words(checkpoint.tokenizer),
                  Ear(ear["proj.weight"], ear["proj.bias"], config.row_ms), wanted.max_typed_tokens,
                  wanted.floor)
    return Thinker(runner, model, wanted.window)
