from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duologue.engine import Fence, PipelineConfig, ReplyAudio
from duologue.engine.messages import Close, CodecFrames, Interrupt, Open, StageInput, StageOutput
from tests.engine.scripted import WORD_SAMPLES


@dataclass
class Talk:
    epoch: int
    turn: int = -1
    seq: int = 0
    samples: int = 0
    frames: deque[CodecFrames] = field(default_factory=deque)


class Codec:
    def __init__(self) -> None:
        self.talks: dict[str, Talk] = {}

    def receive(self, message: StageInput) -> None:
        session = message.fence.session if isinstance(message, CodecFrames) else getattr(message, "session", "")
        match message:
            case Open() | Interrupt() if isinstance(message, Open) or session in self.talks:
                self.talks[session] = Talk(message.epoch)
            case Close():
                self.talks.pop(session, None)
            case CodecFrames() if session in self.talks:
                self.talks[session].frames.append(message)
            case _:
                pass

    @property
    def ready(self) -> bool:
        return any(talk.frames for talk in self.talks.values())

    def step(self) -> Sequence[StageOutput]:
        return [self.sound(session, talk, talk.frames.popleft())
                for session, talk in self.talks.items() if talk.frames]

    def sound(self, session: str, talk: Talk, frames: CodecFrames) -> ReplyAudio:
        if frames.fence.turn != talk.turn:
            talk.turn, talk.seq, talk.samples = frames.fence.turn, 0, 0
        pcm = np.repeat(frames.frames[:, 0], WORD_SAMPLES // 2).astype(np.int16)
        audio = ReplyAudio(Fence(session, talk.epoch, talk.turn, talk.seq), talk.samples, pcm,
                           frames.spans, frames.last)
        talk.seq += 1
        talk.samples += len(pcm)
        return audio


def create(options: Mapping[str, Any], pipeline: PipelineConfig) -> Codec:
    return Codec()
