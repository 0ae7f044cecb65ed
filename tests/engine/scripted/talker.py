from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duologue.engine import Fence, PipelineConfig, ReplyText, TextSpan
from duologue.engine.messages import (
    Close,
    CodecFrames,
    Hold,
    Interrupt,
    Open,
    SessionFailed,
    StageInput,
    StageOutput,
)
from tests.engine.scripted import WORD_SAMPLES

HELD: set[str] = set()
"""Sessions this process has kept a word of."""


@dataclass
class Talk:
    epoch: int
    turn: int = -1
    seq: int = 0
    samples: int = 0
    keeps: bool = False
    held: bool = False
    texts: deque[ReplyText] = field(default_factory=deque)


class Talker:
    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}

    def receive(self, message: StageInput) -> None:
        session = message.fence.session if isinstance(message, ReplyText) else getattr(message, "session", "")
        talk = self.talks.get(session)
        match message:
            case Open():
                self.talks[session] = Talk(message.epoch)
            case Close():
                self.talks.pop(session, None)
            case Interrupt() if talk:
                self.talks[session] = Talk(message.epoch)
            case Hold() if talk:
                talk.held = message.held
            case ReplyText() if talk:
                talk.texts.append(message)
            case _:
                pass

    @property
    def ready(self) -> bool:
        return any(talk.texts and not talk.held for talk in self.talks.values())

    def step(self) -> Sequence[StageOutput]:
        return [output for session, talk in self.talks.items() if talk.texts and not talk.held
                for output in self.speak(session, talk, talk.texts.popleft())]

    def speak(self, session: str, talk: Talk, text: ReplyText) -> Sequence[StageOutput]:
        if text.fence.turn != talk.turn:
            talk.turn, talk.seq, talk.samples = text.fence.turn, 0, 0
        out: list[StageOutput] = []
        words = list(re.finditer(r"\w+", text.text))
        for match in words:
            word = match.group()
            if word == "hold" and session not in HELD:
                HELD.add(session)
                talk.keeps = True
            if talk.keeps:
                return out
            if word == "fail":
                return [*out, SessionFailed(session, "told to")]
            if word == "break":
                raise RuntimeError("told to")
            number = int(word[1:]) if word[1:].isdigit() else -1
            span = TextSpan(text.start + match.start(), text.start + match.end(),
                            talk.samples, talk.samples + WORD_SAMPLES)
            last = text.last and match is words[-1]
            for _ in range(200 if word == "flood" else 1):
                out.append(CodecFrames(Fence(session, talk.epoch, talk.turn, talk.seq),
                                       np.full((2, 1), number, np.float32), (span,), last))
                talk.seq += 1
            talk.samples += WORD_SAMPLES
        if text.last and not words:
            out.append(CodecFrames(Fence(session, talk.epoch, talk.turn, talk.seq),
                                   np.zeros((0, 1), np.float32), (), True))
        return out


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker:
    return Talker()
