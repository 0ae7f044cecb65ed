"""The MiniCPM-o thinker over the own runner and random weights of the tiny size, and one session of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from duologue.engine import Choice, Decision, ReplyText, Unit
from duologue.engine.messages import AppendUnit, Decided, Interrupt, Open, Pcm, StageOutput
from duologue.engine.models.duplex.thinker import Thinker
from duologue.engine.models.minicpmo import random, thinker
from duologue.engine.runners.base import Tokens
from tests.engine.scripted import pipeline

T = random.shape("tiny").tokens
TOKENIZER = random.tokenizer(random.shape("tiny"))
GREEDY: dict[str, Any] = {"temperature": 0, "force_listen_count": 0}
SAMPLES = 16_000


def create(sampling: dict[str, Any] | None = None, **options: Any) -> Thinker:
    return thinker.create({"load_format": "random", "seed": 3, "sampling": {**GREEDY, **(sampling or {})}, **options},
                          pipeline("a", "a", "a", unit_ms=1000))


def sound(index: int) -> Pcm:
    return np.random.default_rng(index).normal(0, 3000, SAMPLES).astype(np.int16)


class Session:
    """One session, and what came out."""

    def __init__(self, stage: Thinker, name: str = "s", **opening: Any) -> None:
        self.stage, self.name, self.epoch = stage, name, opening.pop("epoch", 0)
        self.next_unit = 0
        self.out: list[StageOutput] = []
        stage.receive(Open(name, self.epoch, opening.pop("next_turn", 0), 0, **opening))

    def give(self, pcm: Pcm | None = None, speech: float = 0.0) -> None:
        given = sound(self.next_unit) if pcm is None else pcm
        self.stage.receive(AppendUnit(self.name, self.epoch, Unit(self.next_unit, given, speech)))
        self.next_unit += 1

    def settle(self) -> None:
        while self.stage.ready:
            self.out += self.stage.step()

    def say(self, count: int = 1) -> None:
        for _ in range(count):
            self.give()
            self.settle()

    def interrupt(self, turn: int, heard: str) -> None:
        self.epoch += 1
        self.stage.receive(Interrupt(self.name, self.epoch, turn, heard, turn))
        self.settle()

    @property
    def decisions(self) -> list[Decision]:
        return [each for each in self.out if isinstance(each, Decision)]

    @property
    def texts(self) -> list[ReplyText]:
        return [each for each in self.out if isinstance(each, ReplyText)]

    @property
    def spoken(self) -> list[int]:
        return [each.unit for each in self.decisions if each.choice is Choice.SPEAK]

    @property
    def decided(self) -> tuple[Decided, ...]:
        return tuple(Decided(each.unit, each.turn, each.tokens, each.epoch) for each in self.decisions)

    @property
    def pieces(self) -> tuple[Any, ...]:
        return self.stage._sessions.sequence(self.name)

    @property
    def answers(self) -> list[tuple[int, ...]]:
        """What stands in the sequence as the answer to each unit, which is closed."""
        ids = [id for piece in self.pieces if isinstance(piece, Tokens) for id in piece.ids]
        starts = [at for at, id in enumerate(ids) if id == T.unit]
        return [tuple(ids[at + 1:at + ids[at:].index(T.unit_end)]) for at in starts]
