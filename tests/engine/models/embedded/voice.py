"""The embedded voice's two stages, driven by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duologue.engine.config import ChunkingConfig, PipelineConfig, StageConfig
from duologue.engine.messages import CodecFrames, Fence, Open, Pcm, ReplyAudio, ReplyText, TextSpan
from duologue.engine.models.codec_stage import CodecStage
from duologue.engine.models.embedded import codec, talker
from duologue.engine.models.embedded.talker import Talker
from duologue.engine.models.embedded.vocoder import VocoderState


def pipeline(chunking: ChunkingConfig | None = None, output_rate: int = 16_000) -> PipelineConfig:
    return PipelineConfig.model_validate({
        "name": "voice", "unit_ms": 80, "output_rate": output_rate, "chunking": chunking or ChunkingConfig(),
        "stages": (StageConfig(name="thinker", role="thinker", model="none", process="one"),)})


def new_talker(*sessions: str) -> Talker:
    stage = talker.create({"voice": "rms"}, pipeline())
    assert isinstance(stage, Talker)
    for session in sessions:
        stage.receive(opened(session))
    return stage


def new_codec(*sessions: str, chunking: ChunkingConfig | None = None) -> CodecStage[VocoderState]:
    stage = codec.create({"voice": "rms"}, pipeline(chunking))
    for session in sessions:
        stage.receive(opened(session))
    return stage


def opened(session: str, epoch: int = 0) -> Open:
    return Open(session, epoch=epoch, next_turn=0, next_unit=0)


def delta(text: str, start: int = 0, *, last: bool = False, session: str = "a", epoch: int = 0, turn: int = 0,
          rate: float = 1.0) -> ReplyText:
    return ReplyText(Fence(session, epoch, turn, 0), start, text, last, rate)


def deltas(text: str, size: int, session: str = "a", turn: int = 0) -> list[ReplyText]:
    """``text`` in pieces of ``size`` characters; the last one has ``last``."""
    starts = range(0, max(len(text), 1), size)
    return [delta(text[at:at + size], at, last=at + size >= len(text), session=session, turn=turn)
            for at in starts]


def frames_of(stage: Talker) -> list[CodecFrames]:
    """Step until there is nothing to do."""
    out: list[CodecFrames] = []
    while stage.ready:
        for message in stage.step():
            assert isinstance(message, CodecFrames)
            out.append(message)
    return out


def audio_of(stage: CodecStage[VocoderState]) -> list[ReplyAudio]:
    """Step until there is nothing to do."""
    out: list[ReplyAudio] = []
    while stage.ready:
        for message in stage.step():
            assert isinstance(message, ReplyAudio)
            out.append(message)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A whole reply."""

    pcm: Pcm
    spans: tuple[TextSpan, ...]
    frames: Sequence[CodecFrames]
    audio: Sequence[ReplyAudio]


def say(text: str, size: int | None = None) -> Said:
    """Text, in pieces of ``size`` characters or whole, through both stages."""
    first, second = new_talker("a"), new_codec("a")
    frames: list[CodecFrames] = []
    audio: list[ReplyAudio] = []
    for message in deltas(text, size or max(len(text), 1)):
        first.receive(message)
        for made in frames_of(first):
            frames.append(made)
            second.receive(made)
            audio += audio_of(second)
    return Said(np.concatenate([chunk.pcm for chunk in audio]),
                tuple(span for chunk in audio for span in chunk.spans), frames, audio)
