"""The decoder that all sessions share, whatever runs it."""

from __future__ import annotations

import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from duologue.engine.config import ConfigError
from duologue.engine.models.embedded.thinking.doubt import likelihood
from duologue.engine.models.embedded.thinking.embeddings import embeddings
from duologue.engine.models.embedded.thinking.format import Answer, Format, Heard, Units, since_call, texts
from duologue.engine.models.embedded.thinking.vocabulary import Vocabulary
from duologue.engine.models.options import read_options
from duologue.engine.runners.base import Finish, Rows, Runner, Sampling
from duologue.engine.runners.numpy import NumpyOptions, open_numpy
from duologue.engine.runners.sessions import Sessions
from duologue.engine.runners.window import WindowConfig
from duologue.strict import Strict

FOLDER = Path(__file__).parent.parent / "weights" / "thinker"
"""Where the shipped weights are, a stock folder: ``config.json``, ``model.safetensors``, ``tokenizer.json``."""
_POSSIBLE = 0.1
"""Likelihood, among answers with earlier words too, from which one that needs none of them is taken."""
_PATIENCE_S = 10.0
"""Time without a token after which a runner is taken for dead; it is a process of its own with vLLM."""


class DecoderOptions(Strict):
    """What runs the decoder."""

    runner: Literal["light", "torch", "vllm"] = "light"
    """``light`` needs numpy only."""
    options: Mapping[str, Any] = Field(default_factory=dict)
    """Of the runner."""
    checkpoint: Path = FOLDER
    """Its folder."""
    window: WindowConfig = WindowConfig(high=440, low=300)
    """When the oldest turns go. It was trained on sequences of this length."""


class Model:
    """Answers one question at a time: a few milliseconds, beside which the recogniser's work is long."""

    def __init__(self, runner: Runner, form: Format, window: WindowConfig, table: Rows) -> None:
        """``table``, float32 (vocabulary, hidden_size), are the decoder's embeddings, input and output.

        Raises ``ConfigError`` for a window that does not fit the runner.
        """
        self.format = form
        self._runner = runner
        self._table = table
        try:
            self.sessions = Sessions(runner, form.grammar, window)
        except ValueError as error:
            raise ConfigError(f"options of the trained thinker: {error}") from None

    def answer(self, session: str, heard: Heard | None, earlier: Units = ()) -> Answer:
        """What ``heard`` is answered, and how likely; both are added to the session's sequence.

        A call's slots are pieces of what was heard since the last call of ``earlier`` units; only where such an answer
        is out of the question they are pieces of any: a call is corrected with words of its own. Raises
        ``RuntimeError`` when the runner cannot.
        """
        units = [*earlier, (heard, None)]
        mark = self.sessions.mark(session)
        wide = self.format.sampling(texts(units))
        sampling = self.format.sampling(texts(since_call(units)))
        tokens, states = self._generated(session, heard, sampling)
        if sampling != wide and len(states) and likelihood(states, self._table, tokens, wide) < _POSSIBLE:
            self.sessions.rollback(session, mark)
            sampling = wide
            tokens, states = self._generated(session, heard, sampling)
        answer = self.format.read(tokens)
        if len(states):
            answer.likelihood = likelihood(states, self._table, tokens, sampling)
        return answer

    def _generated(self, session: str, heard: Heard | None, sampling: Sampling) -> tuple[tuple[int, ...], Rows]:
        """The answer's tokens, and the hidden states of all but the last of them."""
        self.sessions.append(session, self.format.pieces(heard))
        self.sessions.generate(session, sampling, "generated")
        tokens: tuple[int, ...] = ()
        states: list[Rows] = []
        while True:
            if not self.sessions.ready:
                self._wait()
            for output in self.sessions.step():
                tokens += output.tokens
                if output.rows is not None:
                    states.append(output.rows)
                if output.finish is Finish.FAILED:
                    raise RuntimeError(f"the trained thinker: {output.detail}")
                if output.finish is not None:
                    return tokens, np.concatenate(states) if states else self._table[:0]

    def close(self) -> None:
        """End the runner; idempotent."""
        self._runner.close()

    def _wait(self) -> None:
        fd = self._runner.wake_fd
        if fd is None or not select.select([fd], [], [], _PATIENCE_S)[0]:
            raise RuntimeError("the trained thinker's runner does not answer")


def open_model(options: DecoderOptions) -> Model:
    """Open the decoder; raises ``ConfigError`` when it cannot be opened."""
    form = Format(Vocabulary.read(options.checkpoint / "tokenizer.json"))
    table = embeddings(options.checkpoint / "model.safetensors")
    return Model(_runner(options), form, options.window, table)


def _runner(options: DecoderOptions) -> Runner:
    if options.runner == "light":
        return open_numpy(options.checkpoint, read_options(NumpyOptions, options.options, "light runner"))
    try:
        from duologue.engine.models.embedded.thinking.heavy import open_heavy
    except ModuleNotFoundError as error:
        raise ConfigError(f"runner: {options.runner} needs the package {error.name!r}: install duologue[torch] or "
                          f"duologue[vllm], or set runner to light") from None
    return open_heavy(options.runner, options.checkpoint, options.options)
