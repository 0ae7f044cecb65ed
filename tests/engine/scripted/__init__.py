"""A scripted stage family: every step of a reply is asked for by a unit, so tests set the pace and no clock does.

The first sample of a unit is an order to the thinker (``Order``). A reply is the words "w0 w1 w2 ...". The talker
says a word with one message of frames whose value is the word's number, and the codec makes ``WORD_SAMPLES``
samples of that value of it. A request for a reply is answered with the first unit that orders nothing, by one word:
its instructions.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from duologue.engine import PipelineConfig, Unit

UNIT_MS = 80
UNIT_SAMPLES = 1280
WORD_SAMPLES = 40
PACKAGE = __name__


class Order(IntEnum):
    LISTEN = 0
    SPEAK = 1
    """Begin a reply, or go on with it, by one word."""
    FINISH = 2
    """Like SPEAK, and the word is the reply's last."""
    BURST = 3
    """Begin a reply or go on with it by 30 words, each in its own message."""
    HEAR = 4
    """The caller has said something: final words that end in this unit."""
    RECALL = 5
    """Say the whole history as the caller's final words."""
    FAIL_ONCE = 6
    """The session fails in the thinker, the first time this process sees it."""
    FAIL = 7
    """The session fails in the thinker, each time."""
    RAISE_ONCE = 8
    """An exception nobody caught, the first time this process sees it."""
    SKIP = 9
    """The thinker forgets to decide."""
    HOLD_TALKER = 10
    """Begin a reply or go on with it by the word "hold": the talker keeps its words from there on to itself."""
    FAIL_TALKER = 11
    """The word "fail" makes the session fail in the talker."""
    BREAK_TALKER = 12
    """The word "break" is an exception in the talker nobody caught."""
    FLOOD = 13
    """The word "flood" makes the talker give 200 messages at once."""
    CALL = 14
    """Call the tool "tool"; the call is named after the unit."""


WORDS = {Order.HOLD_TALKER: "hold", Order.FAIL_TALKER: "fail", Order.BREAK_TALKER: "break",
         Order.FLOOD: "flood"}


def unit(index: int, order: Order = Order.LISTEN) -> Unit:
    return Unit(index, np.full(UNIT_SAMPLES, order, np.int16), speech=0.0)


def pipeline(*processes: str, **changes: Any) -> PipelineConfig:
    """A scripted pipeline whose thinker, talker and codec run in the named processes.

    "~" before a name joins its stage to the one before by shared memory; the process's name is without it.
    """
    roles = ("thinker", "talker", "codec")
    names = [process.removeprefix("~") for process in processes]
    return PipelineConfig.model_validate({
        "name": "scripted", "unit_ms": UNIT_MS, "output_rate": 24000,
        "stages": [{"name": role, "role": role, "model": f"{PACKAGE}.{role}", "process": name}
                   for role, name in zip(roles, names, strict=True)],
        "edges": [{"source": a, "target": b, "capacity": 64,
                   "connector": "shm" if q.startswith("~") else "local" if p == q else "socket"}
                  for a, b, p, q in zip(roles, roles[1:], names, processes[1:], strict=False)],
        **changes})
