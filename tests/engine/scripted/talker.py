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
class Word:
    turn: int
    text: str
    start: int
    last: bool


@dataclass
class Talk:
    epoch: int
    turn: int = -1
    seq: int = 0
    samples: int = 0
    keeps: bool = False
    held: bool = False
    words: deque[Word] = field(default_factory=deque)

    @property
    def ready(self) -> bool:
        return bool(self.words) and not self.held and not self.keeps


class Talker:
    """Says one word a step."""

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
                self.talks[session] = Talk(message.epoch, held=talk.held)
            case Hold() if talk:
                talk.held = message.held
            case ReplyText() if talk:
                turn, words = message.fence.turn, list(re.finditer(r"\w+", message.text))
                talk.words += [Word(turn, match.group(), message.start + match.start(),
                                    message.last and match is words[-1]) for match in words]
                if message.last and not words:
                    talk.words.append(Word(turn, "", message.start, True))
            case _:
                pass

    @property
    def ready(self) -> bool:
        return any(talk.ready for talk in self.talks.values())

    def step(self) -> Sequence[StageOutput]:
        return [output for session, talk in self.talks.items() if talk.ready
                for output in self.speak(session, talk, talk.words.popleft())]

    def speak(self, session: str, talk: Talk, word: Word) -> Sequence[StageOutput]:
        if word.turn != talk.turn:
            talk.turn, talk.seq, talk.samples = word.turn, 0, 0
        if word.text == "hold" and session not in HELD:
            HELD.add(session)
            talk.keeps = True
            return []
        if word.text == "fail":
            return [SessionFailed(session, "told to")]
        if word.text == "break":
            raise RuntimeError("told to")
        number = int(word.text[1:]) if word.text[1:].isdigit() else -1
        samples = WORD_SAMPLES if word.text else 0
        spans = (TextSpan(word.start, word.start + len(word.text), talk.samples, talk.samples + samples),)
        talk.samples += samples
        out: list[StageOutput] = []
        for _ in range(200 if word.text == "flood" else 1):
            out.append(CodecFrames(Fence(session, talk.epoch, talk.turn, talk.seq),
                                   np.full((2 if samples else 0, 1), number, np.float32),
                                   spans if samples else (), word.last))
            talk.seq += 1
        return out


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Talker:
    return Talker()
