"""The embedded thinker: pocketsphinx hears, a dialogue policy decides and writes. No GPU, no download.

It stands behind the interface a model has: units in, one decision each, text in deltas, memory only of what
was heard. What callers can say is in ``dialogue/intents.py``.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

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
from duologue.engine.models.embedded.automaton import compile_grammar
from duologue.engine.models.embedded.dialogue.dialogue import Dialogue
from duologue.engine.models.embedded.dialogue.intents import grammar
from duologue.engine.models.embedded.ear import Ear
from duologue.engine.models.embedded.endpoint import Patience
from duologue.engine.models.embedded.lexicon import FREE_WORDS, Lexicon
from duologue.engine.models.embedded.mind import Mind
from duologue.engine.models.embedded.readers import Agreed
from duologue.engine.models.embedded.recogniser import ChannelMeter, Pool, Recogniser
from duologue.engine.models.embedded.thinking.model import DecoderOptions, Model, open_model
from duologue.engine.models.embedded.thinking.record import Record
from duologue.engine.models.embedded.thinking.turns import Considered
from duologue.engine.models.embedded.thinking.wit import Thought
from duologue.engine.models.embedded.turns import Ruled, TurnTaking
from duologue.engine.models.options import read_options
from duologue.strict import Strict

_log = logging.getLogger(__name__)

_SLICE_S = 0.04
"""Time after which a step leaves the other sessions to the next one."""


class Options(Strict):
    """What a stage config may set."""

    wit: Literal["rules", "trained"] = "rules"
    """Who understands and decides: the dialogue policy's grammar, or the trained thinker."""
    decoder: DecoderOptions = DecoderOptions()
    """Of the trained thinker."""

    greeting: str = Field(default="Hello, this is Duologue. What can I do for you?", max_length=300)
    """Said when a call begins; empty for none."""
    seed: int = 0
    """Of dice, coins and the choice of phrases."""
    max_recognisers: int = Field(default=6, gt=0)
    """Callers who can be listened to at the same moment; each takes about 80 MB."""
    warm_recognisers: int = Field(default=2, gt=0)
    """How many of them are loaded at the start; each later one holds the stage up for 0.3 s once."""
    frequent_words: int = Field(default=10_000, ge=1000)
    """Words of the language model that are kept."""


class Thinker:
    """The stage. Each session is one ``Mind``; they share the recognisers."""

    def __init__(self, options: Options, unit_ms: int) -> None:
        self._options = options
        self._unit_ms = unit_ms
        self._lexicon = Lexicon(grammar().words, options.frequent_words)
        automaton = compile_grammar(grammar(), FREE_WORDS)
        meter = ChannelMeter(self._lexicon.grammar_dictionary, FREE_WORDS[0])
        self._pool = Pool(lambda: Recogniser(self._lexicon, automaton), meter, options.warm_recognisers,
                          options.max_recognisers)
        self._reader = Agreed(self._lexicon)
        self._model: Model | None = open_model(options.decoder) if options.wit == "trained" else None
        self._records: dict[str, Record] = {}
        self._inboxes: dict[str, deque[tuple[float, StageInput]]] = {}
        self._minds: dict[str, Mind] = {}

    @property
    def ready(self) -> bool:
        """Whether a message waits, or another recogniser should be loaded."""
        return any(self._inboxes.values()) or self._pool.wants_more(len(self._minds))

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
            if self._pool.wants_more(len(self._minds)):
                self._pool.grow()
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
        """End the trained thinker's runner; idempotent."""
        if self._model is not None:
            self._model.close()

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
        seed = f"{self._options.seed}/{message.session}"
        if self._model is None:
            dialogue = Dialogue(seed, self._options.greeting, message.tools)
            turns: TurnTaking = Ruled(dialogue, Patience())
        else:
            record = self._records[message.session] = Record(self._model, message.session)
            dialogue = Dialogue(seed, self._options.greeting, message.tools, Thought(record))
            turns = Considered(record)
        ear = Ear(self._pool, self._reader, turns, self._unit_ms)
        self._minds[message.session] = Mind(message, dialogue, ear, turns, self._lexicon, self._unit_ms, _local_time)

    def _drop(self, session: str) -> None:
        self._inboxes.pop(session, None)
        if session in self._minds:
            self._close(session)

    def _fail(self, session: str) -> None:
        self._inboxes.pop(session, None)
        mind = self._minds.pop(session, None)
        if mind is not None:
            mind.fail()
        self._forget(session)

    def _close(self, session: str) -> None:
        self._minds.pop(session).close()
        self._forget(session)

    def _forget(self, session: str) -> None:
        record = self._records.pop(session, None)
        if record is not None:
            record.close()


def _local_time() -> datetime:
    return datetime.now().astimezone()


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Thinker:
    """Load the thinker; raises ``ConfigError`` for options it does not know."""
    checked = read_options(Options, options, "embedded thinker")
    if pipeline.model is not None:
        raise ConfigError(f"the embedded model has its weights with it and reads no checkpoint: leave out "
                          f"model ({pipeline.model}), or give a stage config that serves one")
    return Thinker(checked, pipeline.unit_ms)
